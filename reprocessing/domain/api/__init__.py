"""The HTTP API: scopes of its tokens."""
