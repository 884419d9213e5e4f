"""Store received messages as letters, track these messages in the DLQ, and record messages that come back."""
