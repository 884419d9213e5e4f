"""What all requests of the API share: tokens, scopes, rate limit, idempotency keys, errors and pages."""
