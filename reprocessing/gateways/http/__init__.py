"""Floor 2, reaches: the only package that speaks HTTP to the world; it trusts neither a URL nor a server."""

from reprocessing.gateways.http.network import Net
from reprocessing.gateways.http.post import Posts
from reprocessing.gateways.http.probe import LARGEST, TIMEOUT, check

__all__ = ["LARGEST", "TIMEOUT", "Net", "Posts", "check"]
