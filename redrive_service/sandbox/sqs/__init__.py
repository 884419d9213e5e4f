"""A local SQS. It answers as AWS does, wherever a redrive depends on the answer.

The core (`LocalSqs`) is a deterministic state machine: time and random numbers are arguments, so equal calls give equal
answers. The server adds HTTP, long polling, faults for tests, a call log, and a journal. The journal is a file with all
calls that changed something, so that queues and messages survive kill -9.

To start the server, run `python -m redrive_service.sandbox.sqs`.
"""
