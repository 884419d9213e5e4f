"""Approvals: request, approve, decline and execute deeds that need a second person."""
