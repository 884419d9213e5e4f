"""Statements for lanes: the order of letters in a lane, the lane's first letter (head), and leases."""
