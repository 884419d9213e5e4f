"""Management of options that several commands share."""
