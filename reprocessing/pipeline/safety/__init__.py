"""Run health checks of targets."""
