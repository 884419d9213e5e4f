"""An endpoint that asks for it can tell that a letter came from here; checked without any of our code."""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import replace

import pytest

from reprocessing.models import Attempt, Target
from tests.reprocessing.pipeline.bench import Clock, Workbench
from tests.reprocessing.pipeline.targets.gateway import Does
from tests.reprocessing.pipeline.targets.kinds import Endpoint, World

pytestmark = pytest.mark.django_db(transaction=True)

KEY = b"twenty-four bytes, or so"
SECRETS = {"shop": f"whsec_{base64.b64encode(KEY).decode()}"}
BODY = '{"who": "Zo\u00eb"}\n'


def signed(endpoint: Endpoint, secrets: dict[str, str]) -> Workbench:
    bench = endpoint.bench()
    bench.conf = replace(bench.conf, secrets=secrets)
    Target.objects.filter(pk=bench.target.pk).update(secret="shop")
    bench.enqueue(BODY, key="k", n="1")
    return bench


def test_every_attempt_is_signed_under_the_letter_s_id_with_the_time_of_the_attempt(world: World, clock: Clock) -> None:
    endpoint = Endpoint(world)
    bench = signed(endpoint, SECRETS)
    world.gateway.does["who"] = Does.FAILS
    bench.replay()
    world.gateway.does.clear()
    clock.advance(100)
    bench.replay()
    sent = [one for request in endpoint.sent() for one in request]
    moments = [attempt.opened_at for attempt in Attempt.objects.filter(letter__dlq=bench.dlq).order_by("id")]
    assert [message.headers["webhook-timestamp"] for message in sent] == [
        str(int(moment.timestamp())) for moment in moments
    ]
    assert {message.headers["webhook-id"] for message in sent} == {str(bench.letter().public_id)}
    for message in sent:
        told = f"{message.headers['webhook-id']}.{message.headers['webhook-timestamp']}.{BODY}".encode()
        wanted = base64.b64encode(hmac.new(KEY, told, hashlib.sha256).digest()).decode()
        assert message.headers["webhook-signature"] == f"v1,{wanted}"
    assert len(sent) == 2


def test_where_the_secret_is_missing_nothing_is_sent_unsigned(world: World) -> None:
    endpoint = Endpoint(world)
    bench = signed(endpoint, {"other": SECRETS["shop"]})
    bench.replay(0.3)
    assert endpoint.sent() == []
    assert bench.letter().attempts == 0
    [(outcome, counts_as_failure), *_] = Attempt.objects.filter(letter__dlq=bench.dlq).values_list(
        "outcome", "counts_as_failure"
    )
    assert (outcome, counts_as_failure) == ("not_sent", None)  # what this process lacks says nothing of the target
