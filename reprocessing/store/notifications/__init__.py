"""Store incidents (of which people are notified), notification routes, and notifications that are to be sent."""
