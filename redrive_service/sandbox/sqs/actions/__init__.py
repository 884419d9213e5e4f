"""Functions that execute the actions of the SQS API. The module `registry` maps the name of an action to its function."""
