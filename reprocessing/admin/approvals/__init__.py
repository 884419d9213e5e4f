"""Approvals: the list of requests, and the pages that decide about a request."""
