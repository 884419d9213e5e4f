"""The demo's incident, in which a consumer fails: its steps, and the check of waves, ramp-up, rule and breaker."""
