"""Pages of dead-letter queues."""
