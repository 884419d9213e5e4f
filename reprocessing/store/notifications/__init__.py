"""The outbox of notifications: incidents, what is owed to whom, and who sends it."""
