"""Read messages: bytes, attributes and identity, without Django."""
