"""Statements for circuit breakers, rate ramps, waves, health checks and stops."""
