"""Statements for sending: the intent to send, outcomes of attempts, and task hints."""
