"""Domain of rules, conditions, rate classes."""
