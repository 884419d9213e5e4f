"""Stories: whole use cases, on real servers, by the name of what happens in them."""
