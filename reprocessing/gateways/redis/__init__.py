"""Gateways of Redis: send rates, and the watermark by which a restored backup is detected."""
