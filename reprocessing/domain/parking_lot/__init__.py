"""Parked messages: filters, edits and failure groups."""
