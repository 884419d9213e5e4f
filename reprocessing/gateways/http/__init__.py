"""HTTP requests to targets, and health checks. Neither a URL nor a server is trusted."""

from reprocessing.gateways.http.network import Network
from reprocessing.gateways.http.post import Posts
from reprocessing.gateways.http.probe import LARGEST, TIMEOUT, check

__all__ = ["LARGEST", "TIMEOUT", "Network", "Posts", "check"]
