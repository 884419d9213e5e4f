"""Send letters: lease lanes, check the gate, send, and record the outcomes."""
