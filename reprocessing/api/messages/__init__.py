"""Messages, their history and bodies."""
