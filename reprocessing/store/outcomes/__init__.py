"""Statements for outcomes of sent messages: evidence, consumer reports."""
