"""The state of the local SQS: an account, its queues and their messages. Callers pass the time: no clock is read."""
