"""Two at a time: what decides when two workers want the same."""
