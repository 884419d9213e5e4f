"""The outbox of notifications."""
