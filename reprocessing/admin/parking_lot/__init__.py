"""Admin pages of the parking lot: parked messages, decisions about them, bulk actions, failure groups and exports."""
