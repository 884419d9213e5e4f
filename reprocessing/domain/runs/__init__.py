"""Runs: the selection of letters, and the forecast of the duration."""
