"""Pipeline of rules, conditions, rate classes."""
