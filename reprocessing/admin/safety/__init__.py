"""Pages of stops, circuit breakers, waves and health checks."""
