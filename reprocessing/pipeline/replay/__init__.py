"""Send letters: lease lanes, decide about their heads (gate), send, and record the outcomes."""
