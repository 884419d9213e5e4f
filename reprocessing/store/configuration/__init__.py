"""Policies, the state that a configuration file describes, and what the last apply wrote."""
