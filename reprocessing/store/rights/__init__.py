"""Decide who sees which DLQs, and who may do what: roles with their permissions, and the DLQs of teams."""
