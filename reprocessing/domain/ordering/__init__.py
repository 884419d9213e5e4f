"""Determine the lane of a letter, and the letter's place in the lane."""
