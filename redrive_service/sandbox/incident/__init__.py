"""The demo's incident: its steps, and observation of waves, ramp-up, rule and circuit breaker."""
