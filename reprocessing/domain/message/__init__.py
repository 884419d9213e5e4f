"""Domain of messages: their bytes, attributes and identity, without Django."""
