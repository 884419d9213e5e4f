"""A world for each module of tests: a gateway before the local SQS and moto's server, and nobody at another port."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from reprocessing.gateways import aws
from reprocessing.pipeline.replay import late_answers, slow_targets
from tests.contract.endpoints import moto_endpoint
from tests.nobody import nobody
from tests.reprocessing.gateways.aws_stand_in import REGION, Aws
from tests.reprocessing.pipeline.targets.gateway import gateway
from tests.reprocessing.pipeline.targets.kinds import KINDS, Kind, World, real_sqs


@pytest.fixture(scope="package")
def surroundings() -> Iterator[World]:
    """Everything that the pipeline asks AWS or an endpoint passes the gateway."""
    with (
        nobody() as port, moto_endpoint() as moto, gateway(real_sqs(), moto.url) as made,
        pytest.MonkeyPatch.context() as patch,
    ):  # fmt: skip
        session = boto3.session.Session(region_name=REGION)

        def client(service: Any) -> Any:  # noqa: ANN401  boto3 knows each by a literal name
            return session.client(service, endpoint_url=moto.url)

        for service in ("SQS", "SNS", "EVENTBRIDGE", "LAMBDA", "STS"):
            patch.setenv(f"AWS_ENDPOINT_URL_{service}", made.url)
        aws.forget_clients()
        slow_targets.forget_streams()
        yield World(made, Aws(client("sns"), client("events"), client("s3"), client("sqs")), f"http://127.0.0.1:{port}")
    aws.forget_clients()
    slow_targets.forget_streams()


@pytest.fixture
def world(surroundings: World, transactional_db: None) -> Iterator[World]:
    """As if nothing had passed the gateway yet."""
    surroundings.gateway.forget()
    yield surroundings
    assert late_answers.wait_for_all(10)


#: Others of the same family keep the promise in the quick run.
_SLOWER = ("celery", "topic", "bus")


@pytest.fixture(params=[pytest.param(one, marks=pytest.mark.soak) if one in _SLOWER else one for one in KINDS])
def kind(request: pytest.FixtureRequest, world: World) -> Kind:
    return KINDS[request.param](world)
