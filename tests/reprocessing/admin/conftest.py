"""A local SQS for the pages that examine queues."""

from __future__ import annotations

from tests.reprocessing.gateways.aws_endpoint import make_queue, own_sqs, sandbox  # noqa: F401  fixtures
