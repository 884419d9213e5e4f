"""Plan runs, select their letters, put the letters onto lanes, and read the progress of runs."""
