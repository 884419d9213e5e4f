"""Store the HTTP API's tokens, and the responses to requests that have the header `Idempotency-Key`."""
