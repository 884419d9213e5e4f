"""Admin of registration, schedule and status of DLQs."""
