"""Requests made from the OpenAPI document: no fault, and no answer that the document does not have.

API_SOAK_SECONDS=600 runs it for ten minutes (docs/development.md).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import pytest
import schemathesis
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import Status, events, from_schema

from tests.reprocessing.api.callers import program
from tests.reprocessing.api.rows import one_of_everything
from tests.reprocessing.api.servers import serving

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.soak, pytest.mark.timeout(0)]

SECONDS: Final = int(os.environ.get("API_SOAK_SECONDS", "20"))
SEED: Final = int(os.environ.get("API_SOAK_SEED", "1"))
#: Not of a contract: a valid request may be refused by the state of things (409), or by rules that no schema can say.
NOT_ASKED: Final = ("positive_data_acceptance", "ensure_resource_availability", "use_after_free")


@pytest.fixture
def address(settings: Any) -> Iterator[str]:  # noqa: ANN401
    settings.REDRIVE = {**settings.REDRIVE, "API_RATE": 10_000}
    settings.ALLOWED_HOSTS = ["127.0.0.1"]
    with serving() as address:
        yield f"{address}/api/v1/openapi.json"


def test_no_request_made_from_the_document_finds_a_fault_or_an_answer_that_it_does_not_have(address: str) -> None:
    one_of_everything()
    found, statuses = list[str](), Counter[int]()
    for event in from_schema(_schema(address, program().secret)).execute():
        if isinstance(event, events.ScenarioFinished | events.FuzzScenarioFinished):
            interactions = event.recorder.interactions
            statuses.update(made.response.status_code for made in interactions.values() if made.response)
            found += _failures(event)
        elif isinstance(event, events.NonFatalError):
            found.append(str(event.info))
    print(f"{sum(statuses.values()):,} requests in {SECONDS} s, seed {SEED}: {dict(sorted(statuses.items()))}")  # noqa: T201
    assert Counter(text.partition(":")[0] for text in found) == {}, "\n".join(found[:40])
    assert {200, 401, 422} <= set(statuses)


def _schema(address: str, secret: str) -> Any:  # noqa: ANN401  untyped
    asked = {
        "seed": SEED, "max-time": SECONDS, "headers": {"Authorization": f"Bearer {secret}"}, "workers": 1,
        "continue-on-failure": True, "checks": {name: {"enabled": False} for name in NOT_ASKED},
        "cache": {"enabled": False},
    }  # fmt: skip
    return schemathesis.openapi.from_url(address, config=SchemathesisConfig.from_dict(asked))


def _failures(event: Any) -> Iterator[str]:  # noqa: ANN401  two kinds of event
    for case, checks in event.recorder.checks.items():
        for check in checks:
            if check.status == Status.FAILURE:
                sent, answer = (made := event.recorder.interactions[case]).request, made.response
                told = answer.content[:500] if answer else b""
                failure = check.failure_info.failure if check.failure_info else ""
                yield f"{check.name}: {sent.method} {sent.uri} {sent.body!r}: {told!r}: {failure}"
