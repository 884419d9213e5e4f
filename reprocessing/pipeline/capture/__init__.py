"""Receive messages from a DLQ, recognise messages that returned, store the others as letters, and delete copies."""
