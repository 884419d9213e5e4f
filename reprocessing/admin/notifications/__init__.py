"""Admin pages of notification destinations, incidents and sent notifications."""
