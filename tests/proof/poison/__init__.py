"""Poison: what nobody should send and somebody does, at every place of a batch, to every kind of target."""
