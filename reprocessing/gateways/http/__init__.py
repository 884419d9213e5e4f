"""Send letters to HTTP endpoints, and make HTTP health checks. Neither the URLs nor the servers are trusted."""

from reprocessing.gateways.http.network import Network
from reprocessing.gateways.http.post import Posts
from reprocessing.gateways.http.probe import LARGEST, TIMEOUT, check

__all__ = ["LARGEST", "TIMEOUT", "Network", "Posts", "check"]
