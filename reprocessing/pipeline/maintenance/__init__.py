"""Pipeline of recovery, retention, restore from a backup, doctor."""
