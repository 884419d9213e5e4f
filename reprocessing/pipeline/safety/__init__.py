"""Run the health checks of targets."""
