"""Find, edit, release, discard, group and export parked messages, one by one or with bulk actions."""
