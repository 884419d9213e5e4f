"""Store the states of circuit breakers, ramp-ups, waves, health checks and stops, which limit what is sent."""
