"""Recovery, retention, restore from a backup, doctor."""
