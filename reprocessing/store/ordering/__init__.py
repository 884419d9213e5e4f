"""Store of ordering keys, sequences, lanes, heads and leases."""
