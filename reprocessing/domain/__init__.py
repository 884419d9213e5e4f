"""Pure functions that decide what the service does. They use no Django, SQL, AWS, clock or random number generator."""
