"""Store what limits sends: the states of circuit breakers, ramp-ups, waves and health checks, and stopped sends."""
