"""Management of what commands print."""
