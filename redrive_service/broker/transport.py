"""The transport for Celery's settings: `broker_transport = "redrive_service.broker.transport:Transport"`.

`broker_url` stays `sqs://`: kombu 5.7.0 refuses an import path in a URL, and takes it as `broker_transport` only.
"""

from __future__ import annotations

from importlib.metadata import version

from kombu.transport import SQS

from redrive_service.broker.channel import Channel
from redrive_service.broker.timeouts import FASTEST_POLL
from redrive_service.broker.version import KombuValue, require_tested_kombu

require_tested_kombu(version("kombu"))


class Transport(SQS.Transport):
    """kombu's SQS transport with workarounds for its bugs.

    The queues are in the transport option `predefined_queues`; credentials and endpoint come from AWS's default
    chain (`AWS_ENDPOINT_URL_SQS` for another endpoint). kombu's `sts_role_arn` is not supported:
    name a role in AWS's chain, which renews its credentials. The option `timeouts` changes the waits.
    """

    Channel = Channel
    polling_interval: float  # type: ignore[assignment]  # kombu's default is an int, its option may be a float

    def __init__(self, client: KombuValue, **kwargs: KombuValue) -> None:
        super().__init__(client, **kwargs)
        self.polling_interval = max(self.polling_interval, FASTEST_POLL)
