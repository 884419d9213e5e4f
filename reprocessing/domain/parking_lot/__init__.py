"""Decide about parked messages: filters, edits and failure groups."""
