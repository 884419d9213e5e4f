"""Gateways of Redis: send rates, and the watermark of ticks."""
