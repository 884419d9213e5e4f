"""Outcomes of sent messages: evidence and consumer reports."""
