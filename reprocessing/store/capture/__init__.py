"""Store received messages as letters, track the letters' copies in the DLQ, and record messages that come back."""
