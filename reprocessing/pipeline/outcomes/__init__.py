"""Find out whether sent messages were processed: by evidence, or by consumer reports."""
