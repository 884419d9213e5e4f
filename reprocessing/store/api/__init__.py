"""Store the HTTP API's tokens, and its answers to requests with the header `Idempotency-Key`."""
