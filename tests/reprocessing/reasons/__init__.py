"""Tests of consumers' reports."""
