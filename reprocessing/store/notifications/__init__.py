"""The outbox of notifications: incidents, routes, pending notifications, and sending."""
