"""The Django app that captures messages from dead-letter queues, redrives them in order, and records the outcomes."""
