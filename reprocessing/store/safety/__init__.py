"""Spared attempts, targets that keep failing, runs that the service pauses, redrive loops, rate ramps."""
