"""Faults in real processes: what dies, what is left, and who mends it."""
