"""How the pages write moments: the same everywhere, with seconds, in UTC."""
