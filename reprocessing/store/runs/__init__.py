"""Store runs: plan runs, select their letters, put the letters onto lanes, and read the progress."""
