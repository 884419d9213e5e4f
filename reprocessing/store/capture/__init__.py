"""Store messages received from a DLQ as letters, track their copies in the DLQ, and record messages that come back."""
