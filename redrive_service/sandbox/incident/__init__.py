"""The demo's incident: its scenario, and the waves, ramp-up, rule and circuit breaker that are seen meanwhile."""
