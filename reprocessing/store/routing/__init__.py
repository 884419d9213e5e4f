"""Store rules and rate classes, and write the rules' decisions about letters."""
