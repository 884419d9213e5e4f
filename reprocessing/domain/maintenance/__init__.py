"""Describe findings of redrive_doctor, and evidence about unfinished letters after a restore from a backup."""
