"""Prepare the requests that deliver messages to targets (headers, signatures), and read HTTP status codes."""
