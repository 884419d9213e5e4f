"""Domain of what became of sent messages: evidence, consumer reports."""
