"""Edit a message's body and attributes before it is released."""
