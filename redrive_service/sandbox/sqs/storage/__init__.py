"""What survives kill -9: a journal of calls, and snapshots."""
