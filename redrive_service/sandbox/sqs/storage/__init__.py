"""Keep the state of the local SQS on disk, so that it survives kill -9, with a journal of calls and snapshots."""
