"""Determine outcomes of sent messages from evidence and consumer reports."""
