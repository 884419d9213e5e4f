"""Seal payloads with keys, and mask values in them."""
