"""Store of sending: gate, intent, send, settlement, backoff, claims."""
