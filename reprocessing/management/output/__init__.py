"""Texts and JSON that commands print."""
