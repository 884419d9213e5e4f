"""Prepare requests to targets and read the answers: HTTP status codes, headers and signatures."""
