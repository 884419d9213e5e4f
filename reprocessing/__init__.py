"""Dead letters: captured, kept, replayed in order, and settled."""
