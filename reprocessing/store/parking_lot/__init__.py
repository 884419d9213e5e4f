"""Find, edit, release, discard, group and export parked messages, singly or with bulk actions."""
