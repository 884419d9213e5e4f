"""Tests of the store's SQL."""
