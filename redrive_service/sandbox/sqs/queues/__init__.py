"""The state: an account, its queues and their messages, on an injected clock."""
