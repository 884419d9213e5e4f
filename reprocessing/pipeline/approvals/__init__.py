"""Request, approve, decline and execute actions that need the approval of a second person."""
