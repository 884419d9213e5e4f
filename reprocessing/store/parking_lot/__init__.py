"""Store parked messages: filters, edits, bulk actions, failure groups, export."""
