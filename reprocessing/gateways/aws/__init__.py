"""AWS for every gateway: clients, roles, addresses of queues, errors, throttling."""

from reprocessing.gateways.aws.clients import forget
from reprocessing.gateways.aws.throttling import throttled

__all__ = ["forget", "throttled"]
