"""Gateways to other systems: AWS, HTTP endpoints, Redis and notification services."""
