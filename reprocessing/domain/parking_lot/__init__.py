"""Define filters of messages, check edits of parked messages, and find the reason of failures for failure groups."""
