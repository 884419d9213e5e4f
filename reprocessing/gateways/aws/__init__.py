"""Provide what all AWS gateways share: clients, roles, queue addresses, errors, counts of throttled requests."""

from reprocessing.gateways.aws.clients import forget_clients
from reprocessing.gateways.aws.throttling import take_throttle_counts

__all__ = ["forget_clients", "take_throttle_counts"]
