"""Read messages that failed in AWS services other than SQS, or in Celery, and rebuild what their consumer was given."""
