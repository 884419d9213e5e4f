"""Dead-letter queues that discovery finds: sources, risk, names."""
