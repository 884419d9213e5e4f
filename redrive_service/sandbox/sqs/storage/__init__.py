"""Keep the state of the local SQS on disk, so that it survives kill -9: a snapshot, and a journal of later calls."""
