"""Floor 0, decides: plain Python, no Django, no AWS, no clock and no dice but those handed in."""
