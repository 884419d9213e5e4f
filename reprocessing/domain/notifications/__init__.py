"""Define notifications: events, thresholds, destinations, limits and texts."""
