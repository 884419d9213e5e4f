"""Decide when people are notified of an event, where the notification is sent, and what its text says."""
