"""Determine the lane (the letters of one ordering key) of a letter, and the letter's place in the lane."""
