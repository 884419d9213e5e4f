"""Admin of selection, plans, forecast, progress of runs."""
