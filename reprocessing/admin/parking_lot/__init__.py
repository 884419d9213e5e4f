"""Pages of the parking lot, bulk actions, failure groups and exports."""
