"""A local SQS for this folder's tests alone."""

from tests.reprocessing.gateways.aws_endpoint import (  # noqa: F401  fixtures
    address,
    afresh,
    endpoint,
    fifo,
    fifo_address,
    make_queue,
    own_sqs,
    queue,
    sandbox,
)
