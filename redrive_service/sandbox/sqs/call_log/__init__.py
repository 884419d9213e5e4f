"""The call log of the local SQS: every request with its answer and its effects."""
