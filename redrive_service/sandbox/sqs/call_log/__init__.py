"""The call log of the local SQS: every request, its answer, and what it did with messages."""
