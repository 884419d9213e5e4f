"""Store runs: select their letters, plan them, put letters onto lanes, and read their progress."""
