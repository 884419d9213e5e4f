"""Decide about safety: send rate, circuit breakers, waves, health checks, and when a run pauses for a person."""
