"""Functions that execute the actions of the SQS API. `registry` has the function of each action name."""
