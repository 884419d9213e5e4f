"""The functions that execute the actions of the SQS API; `registry` maps action names to them."""
