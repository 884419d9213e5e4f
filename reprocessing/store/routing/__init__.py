"""Store of rules, conditions, rate classes."""
