"""Determine what became of sent messages, from the records about them and from consumer reports."""
