"""The server around the state machine: HTTP, long polling, faults, control routes."""
