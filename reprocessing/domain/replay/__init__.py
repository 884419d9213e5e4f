"""Define sending: backoff, checks before sending, and results of attempts."""
