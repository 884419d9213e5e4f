"""What is remembered of dlqs, and taken out of it again."""
