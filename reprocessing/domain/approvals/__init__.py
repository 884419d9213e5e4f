"""Describe actions of a person that need the approval of a second person."""
