"""Admin pages that list, make and revoke tokens of the HTTP API."""
