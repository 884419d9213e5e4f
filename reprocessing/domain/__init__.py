"""Make the service's decisions in plain Python: no Django, no AWS; time and random numbers are arguments."""
