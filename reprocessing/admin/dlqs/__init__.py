"""Admin pages that list, discover, add and change dead-letter queues."""
