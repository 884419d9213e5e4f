"""The elements of the SQS API: parameters, errors, policies, message contents, receipt handles."""
