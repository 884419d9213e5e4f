"""A local SQS of these tests' own, for the pages that examine queues."""

from __future__ import annotations

from tests.reprocessing.sqs.conftest import make_queue, own_sqs, sandbox  # noqa: F401  fixtures
