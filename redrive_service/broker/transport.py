"""The class that Celery's setting `broker_transport` names: "redrive_service.broker.transport:Transport".

The setting `broker_url` stays `sqs://`, because kombu 5.7.0 accepts an import path only in `broker_transport`.
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

    The transport option `predefined_queues` names the queues, and the option `timeouts` replaces defaults of
    `Timeouts`. Credentials and endpoint come from AWS's default chain (`AWS_ENDPOINT_URL_SQS` for another endpoint).
    kombu's option `sts_role_arn` is not supported. Configure a role in AWS's default chain instead, because the chain
    renews the credentials.
    """

    Channel = Channel
    polling_interval: float  # type: ignore[assignment]  # kombu's default is an int, its option may be a float

    def __init__(self, client: KombuValue, **kwargs: KombuValue) -> None:
        super().__init__(client, **kwargs)
        self.polling_interval = max(self.polling_interval, FASTEST_POLL)
