"""Statements for sending: the intent to send, attempts' outcomes, and task hints."""
