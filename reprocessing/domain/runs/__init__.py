"""Define a run's selection of letters, and forecast the run's duration."""
