"""Tokens of the HTTP API, and answers of its requests by idempotency key."""
