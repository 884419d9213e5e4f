"""The HTTP server of the local SQS, with long polling, faults and control routes."""
