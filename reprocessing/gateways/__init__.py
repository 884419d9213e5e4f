"""Reach other systems: AWS, HTTP endpoints, Redis, notification services."""
