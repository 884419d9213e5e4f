"""Code for all operations of the API: tokens, scopes, rate limit, idempotency keys, errors and pages of lists."""
