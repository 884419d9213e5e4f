"""Notifications: events, thresholds, destinations, limits and texts."""
