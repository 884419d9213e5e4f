"""Management of what several commands share."""
