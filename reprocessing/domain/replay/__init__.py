"""Sending: backoff and the results of the gate and of attempts."""
