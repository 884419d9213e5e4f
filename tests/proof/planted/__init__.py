"""Planted bugs: guards of the product taken out, one at a time, in a copy of it; a named test has to notice each."""
