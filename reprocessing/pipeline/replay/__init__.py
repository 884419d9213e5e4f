"""Send letters: lease lanes, decide whether the first letter of each lane may be sent, send, record the outcomes."""
