"""Statements for receiving from a DLQ, for copies held in SQS, and for messages that return."""
