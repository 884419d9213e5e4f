"""Request, approve, decline and execute deeds (actions of a person) that need a second person."""
