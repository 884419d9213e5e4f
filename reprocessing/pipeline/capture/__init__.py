"""Receive messages from a DLQ, recognise returned ones, and delete copies."""
