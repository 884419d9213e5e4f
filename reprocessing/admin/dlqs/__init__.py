"""Admin pages of dead-letter queues: registration, schedule and status."""
