"""Acts on parked letters, edits, bulk actions, failure groups, the parking queue."""
