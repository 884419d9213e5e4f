"""Define the backoff after failed attempts, the decisions before a send, and the results of attempts."""
