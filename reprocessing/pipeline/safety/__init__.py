"""Pipeline of rate, ramp-up, circuit breaker, waves, health checks, stops."""
