"""The storage that survives kill -9: a journal of calls, and snapshots."""
