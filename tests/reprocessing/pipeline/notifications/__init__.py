"""Notifications, received by servers on loopback."""
