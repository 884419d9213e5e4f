"""Tests of what consumers say about messages."""
