"""What a person is told of: events, thresholds, destinations, limits and texts."""
