"""The actions of the SQS API, by name in `registry`."""
