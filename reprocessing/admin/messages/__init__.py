"""Admin pages that list messages, show a message and its payload, and edit a parked message."""
