"""Admin pages of stopped sends, key queues, circuit breakers, waves and health checks."""
