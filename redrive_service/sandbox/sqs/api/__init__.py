"""Parts of the SQS API that the actions share: parameters, errors, policies, message contents, receipt handles."""
