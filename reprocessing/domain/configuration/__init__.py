"""Read configuration files, compare them with the stored settings, and check the values of settings.REDRIVE."""
