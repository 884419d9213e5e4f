"""Read messages: their bytes, attributes, keys and formats; and build the attributes of redriven messages."""
