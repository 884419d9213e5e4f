"""Store runs: selection of letters, plans, forecast, progress."""
