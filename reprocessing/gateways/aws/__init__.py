"""Provide what all AWS gateways need: clients, roles, queue addresses, errors, and counts of throttled requests."""

from reprocessing.gateways.aws.clients import forget_clients
from reprocessing.gateways.aws.throttling import take_throttle_counts

__all__ = ["forget_clients", "take_throttle_counts"]
