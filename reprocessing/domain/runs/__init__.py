"""Define a run's selection of letters, forecast the run's duration, and say what the run waits for."""
