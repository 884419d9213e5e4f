"""The HTTP server of the local SQS, with long polling, faults for tests, and routes that control the server."""
