"""Decisions about failures: whether the message or its target is at fault, and when a run pauses for a person."""
