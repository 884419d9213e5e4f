"""Decide how fast messages are sent, and when sending stops: rate, breakers, waves, health checks, pauses of runs."""
