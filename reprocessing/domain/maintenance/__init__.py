"""Maintenance: findings of redrive_doctor, and letters in doubt after a restore."""
