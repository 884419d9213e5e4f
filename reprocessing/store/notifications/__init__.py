"""Store incidents, of which people are notified; the routes that say who is notified; and notifications to be sent."""
