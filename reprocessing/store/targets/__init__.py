"""Store targets, and the settings of their circuit breakers."""
