"""Invocations keep the contract of carriers. Against a stand-in for Lambda, which says what it is."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import boto3
import pytest
from botocore.config import Config

from reprocessing.domain.targets.async_sender import LambdaCall
from reprocessing.gateways import aws
from reprocessing.gateways.aws import clients
from reprocessing.gateways.aws_services.lambda_invoke import Invocations
from tests.contract.carriers import LATE, SECRET, CarrierContract, Does, Road
from tests.nobody import nobody
from tests.reprocessing.gateways.stand_ins import Asked, Said, StandIn, function_error, lambda_error, standing_in

FUNCTION = "arn:aws:lambda:eu-west-1:111122223333:function:ship"
REGION, AWAY = "eu-west-1", "eu-west-2"  #: nobody listens where AWAY's client goes


class FunctionRoad(Road):
    def __init__(self, stand_in: StandIn) -> None:
        self._stand_in = stand_in
        self._carriers: list[Invocations] = []
        self._lock = threading.Lock()
        self._open = self._most = 0
        self._over = threading.Event()
        stand_in.answer = self._answer
        stand_in.asked.clear()

    def carrier(self, *, limit: int) -> Invocations:
        self._carriers.append(Invocations(limit=limit, slack=0.0))
        return self._carriers[-1]

    def call(self, attempt: int, does: Does, *, timeout: float = 5.0) -> LambdaCall:
        region = AWAY if does is Does.IS_AWAY else REGION
        payload = json.dumps({"does": does, "secret": SECRET}).encode()
        return LambdaCall(attempt, FUNCTION, region, "", payload, timeout)

    def asked(self) -> int:
        return len(self._stand_in.asked)

    def most_open(self) -> int:
        return self._most

    def close(self) -> None:
        self._over.set()
        for carrier in self._carriers:
            carrier.close()

    def _answer(self, asked: Asked) -> Said:
        with self._lock:
            self._open += 1
            self._most = max(self._most, self._open)
        try:
            return self._does(Does(json.loads(asked.body)["does"]))
        finally:
            with self._lock:
                self._open -= 1

    def _does(self, does: Does) -> Said:
        match does:
            case Does.TAKES_LATE:
                self._over.wait(LATE)
            case Does.FAILS:
                return function_error("Unhandled", {"errorType": "ValueError", "errorMessage": SECRET})
            case Does.ASKS_TO_WAIT:
                return lambda_error(429, "TooManyRequestsException", SECRET, **{"Retry-After": "7"})
            case Does.HANGS:
                self._over.wait(60)
            case Does.BREAKS_OFF:
                return Said(hangs_up=True)
            case _:
                pass
        return Said(body=json.dumps(SECRET).encode())


@pytest.fixture(scope="module")
def stand_in() -> Iterator[StandIn]:
    usual = clients.lambda_client

    def functions(region: str, role: str, *, seconds: float, connections: int) -> clients.AwsClient:
        if region != AWAY:
            return usual(region, role, seconds=seconds, connections=connections)
        config = Config(retries={"total_max_attempts": 1}, connect_timeout=seconds)
        nowhere = f"http://127.0.0.1:{port}"
        made: clients.AwsClient = boto3.session.Session().client("lambda", AWAY, endpoint_url=nowhere, config=config)
        return made

    with nobody() as port, standing_in(lambda _: Said()) as running, pytest.MonkeyPatch.context() as patch:
        patch.setattr("reprocessing.gateways.aws_services.lambda_invoke.lambda_client", functions)
        patch.setenv("AWS_ENDPOINT_URL_LAMBDA", running.url)
        aws.forget_clients()
        yield running
    aws.forget_clients()


@pytest.fixture
def road(stand_in: StandIn) -> Iterator[FunctionRoad]:
    made = FunctionRoad(stand_in)
    yield made
    made.close()


class TestInvocations(CarrierContract):
    """The contract, kept by invocations."""
