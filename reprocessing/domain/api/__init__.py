"""Define the scopes of API tokens, which say what a token may do."""
