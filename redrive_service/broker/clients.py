"""Make the SQS clients of a channel, with timeouts, and replace the clients of a queue that fails repeatedly."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from botocore.config import Config
from kombu.transport import SQS

from redrive_service.broker.timeouts import Timeouts
from redrive_service.broker.version import KombuValue
from redrive_service.broker.wire import ContainedSqsConnection
from reprocessing.gateways.aws.sessions import new_session


class ClientsChannel(SQS.Channel):
    """A channel that creates its own SQS clients.

    A queue has one client for receives on the event loop, one for blocking receives, and one for all other calls.
    """

    # Attributes of the parent class that kombu's stubs lack.
    hub: KombuValue
    is_secure: KombuValue
    endpoint_url: KombuValue
    connection: KombuValue
    _get_bulk_async: Callable[..., object]
    _get_message_estimate: Callable[[], int]
    _resolve_queue_url: Callable[[str], str]

    def __init__(self, *args: KombuValue, **kwargs: KombuValue) -> None:
        self._receiving_clients: dict[str, KombuValue] = {}
        super().__init__(*args, **kwargs)

    @cached_property
    def timeouts(self) -> Timeouts:
        """The channel's timeouts: the values of the transport option `timeouts`, else the defaults."""
        return Timeouts.of(self.transport_options.get("timeouts", {}))

    def asynsqs(self, queue: str | None = None) -> ContainedSqsConnection:
        """Return the connection of a queue for receives on the event loop."""
        name = queue or ""
        connections: dict[str, ContainedSqsConnection] = self._predefined_queue_async_clients
        if name not in connections:
            wanted = self.get_message_attributes
            connections[name] = ContainedSqsConnection(
                timeouts=self.timeouts,
                long_poll=self.wait_time_seconds,
                sqs_connection=self.sqs(queue=queue),
                message_system_attribute_names=wanted["MessageSystemAttributeNames"],
                message_attribute_names=wanted["MessageAttributeNames"],
            )
        return connections[name]

    def _receiving_client(self, queue: str) -> KombuValue:
        # Only a receive may take as long as the long poll. botocore does not retry it, because the next poll follows.
        name = self.canonical_queue_name(queue)
        if name not in self._receiving_clients:
            own = self.predefined_queues.get(name, {})
            self._receiving_clients[name] = self._new_boto_client(
                "sqs",
                own.get("region", self.region),
                own.get("access_key_id", self.conninfo.userid),
                own.get("secret_access_key", self.conninfo.password),
                config=Config(
                    read_timeout=self.timeouts.receive(long_poll=self.wait_time_seconds),
                    retries={"mode": "standard", "total_max_attempts": 1},
                ),
            )
        return self._receiving_clients[name]

    def _new_boto_client(  # noqa: PLR0913, PLR0917  # kombu's signature
        self, service: str, region: str | None, access_key_id: str | None, secret_access_key: str | None,
        session_token: str | None = None, config: Config | None = None,
    ) -> KombuValue:  # fmt: skip
        # With kombu's own method, each client loads botocore's data files again (9 MB of memory). The sessions of
        # `new_session` share them.
        session = new_session()
        if region:  # not an argument of `create_client`, which the option client-config could not override
            session.set_config_variable("region", region)
        return session.create_client(
            service,
            use_ssl=self.is_secure is None or bool(self.is_secure),
            endpoint_url=self.endpoint_url,
            aws_access_key_id=access_key_id or None,
            aws_secret_access_key=secret_access_key or None,
            aws_session_token=session_token or None,
            config=self._client_config().merge(config) if config else self._client_config(),
        )

    def _client_config(self) -> Config:
        # botocore's default timeout is a minute, and its default number of retries differs between releases.
        return Config(
            connect_timeout=self.timeouts.connect,
            read_timeout=self.timeouts.call_read,
            tcp_keepalive=True,
            retries={"mode": "standard", "total_max_attempts": self.timeouts.call_attempts},
        ).merge(Config(**(self.transport_options.get("client-config") or {})))

    def _start_afresh(self, queue: str) -> None:
        # botocore renews expired credentials, but reads a credentials file only once: a new file needs a new client.
        name = self.canonical_queue_name(queue)
        for clients in (self._predefined_queue_clients, self._predefined_queue_async_clients, self._receiving_clients):
            clients.pop(name, None)
