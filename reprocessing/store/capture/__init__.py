"""Statements for receiving from a DLQ, for copies that stay in the DLQ, and for messages that come back."""
