"""Tests of work that is done once."""
