"""Statements for sending: intent, settlement, hints."""
