"""The language of the SQS API: parameters, errors, policies, contents, receipt handles."""
