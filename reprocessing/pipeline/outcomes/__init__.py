"""Find out whether sent letters were processed: by evidence, or by reports of consumers."""
