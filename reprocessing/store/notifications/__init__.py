"""Store incidents (events that people are notified of), the routes that say who is notified, and notifications."""
