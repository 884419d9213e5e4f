"""Record sends: the intent before each send, the result of each attempt, and the task hints that beat gave workers."""
