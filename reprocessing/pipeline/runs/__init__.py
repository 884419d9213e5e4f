"""Plan, forecast and execute runs."""
