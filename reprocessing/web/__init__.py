"""Floor 2, reaches: the only package that speaks HTTP to the world; it trusts neither a URL nor a server."""

from reprocessing.web.asking import LARGEST, TIMEOUT, check
from reprocessing.web.network import Net
from reprocessing.web.posts import Posts

__all__ = ["LARGEST", "TIMEOUT", "Net", "Posts", "check"]
