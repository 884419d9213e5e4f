"""The local SQS's state on disk, which survives kill -9: a journal of calls, and snapshots."""
