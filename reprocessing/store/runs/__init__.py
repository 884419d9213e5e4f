"""Plan runs, select their letters, queue the letters in lanes, and read the progress of runs."""
