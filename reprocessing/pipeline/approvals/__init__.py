"""Request, approve, decline and execute deeds. A deed is an action of a person that needs a second person."""
