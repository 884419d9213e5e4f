"""Examine DLQs and targets before they are registered."""
