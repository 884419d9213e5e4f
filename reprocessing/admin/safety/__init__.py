"""Admin pages of stops, key queues, circuit breakers, waves and health checks."""
