"""Functions that execute the actions of the SQS API. The module `registry` finds the function for an action's name."""
