"""Task messages are checked when they are planned and when they are sent, and known when they come back changed."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from celery import Celery, group

from reprocessing.domain.errors import PayloadUnreadable
from reprocessing.models import Letter, Target
from reprocessing.pipeline.parking_lot import act_on_parked
from reprocessing.pipeline.runs import plan
from reprocessing.store.ordering import lanes, placement
from reprocessing.store.ordering.placement import UnplacedLetters
from tests import envelopes
from tests.reprocessing.pipeline.bench import Clock, Workbench

pytestmark = pytest.mark.django_db(transaction=True)

CELERY = {"kind": "celery"}
RESETS = {"kind": "celery", "resets_retries": True}


def bury(bench: Workbench, body: bytes) -> str:
    bench.bury(body.decode())
    return body.decode()


def part_of_a_group() -> bytes:
    def send(app: Celery) -> None:
        group(app.signature("shop.charge"), app.signature("shop.charge"), app=app).apply_async()

    return envelopes.written(envelopes.documents(send)[0])


def expired() -> bytes:
    return envelopes.task(expires=lanes.database_now() - timedelta(days=1))


def parked(bench: Workbench) -> dict[str, tuple[str, str]]:
    found = Letter.objects.filter(dlq=bench.dlq, state="parked")
    return {bytes(one.payload.body).decode(): (one.reason, one.detail) for one in found}


def release(bench: Workbench) -> None:
    some = list(Letter.objects.filter(dlq=bench.dlq, state="parked").values_list("id", flat=True))
    assert act_on_parked.release(some, by="a person", reason="go").refused == {}


def test_what_cannot_go_to_workers_is_parked_when_it_is_enlisted_and_the_rest_goes_as_it_is() -> None:
    bench = Workbench(target_fields=CELERY)
    good, closed = bury(bench, envelopes.task("shop.charge", 1)), bury(bench, envelopes.task(serializer="pickle"))
    late = bury(bench, expired())
    part = bury(bench, part_of_a_group())
    foreign = bury(bench, b"hello")
    bench.ready()
    why = {one: reason for one, (reason, _) in parked(bench).items()}
    assert why == {late: "expired", part: "part_of_group", foreign: "unreadable_task"}
    bench.replay()
    assert sorted(bench.delivered_bodies()) == sorted([good, closed])


def test_to_another_kind_of_target_all_of_them_go() -> None:
    bench = Workbench()
    late, foreign = expired(), b"hello"
    bodies = [bury(bench, one) for one in (late, foreign)]
    bench.ready()
    bench.replay()
    assert sorted(bench.delivered_bodies()) == sorted(bodies)


def test_a_part_of_a_group_goes_on_a_persons_word_as_it_is() -> None:
    bench = Workbench(target_fields=CELERY)
    part = bury(bench, part_of_a_group())
    bench.ready()
    release(bench)
    bench.replay()
    assert bench.delivered_bodies() == [part]


def test_what_has_expired_does_not_go_on_a_persons_word_until_its_target_takes_the_expiry_out() -> None:
    bench = Workbench(target_fields=CELERY)
    late = bury(bench, expired())
    bench.ready()
    release(bench)
    bench.replay()
    assert bench.delivered() == []
    assert parked(bench)[late][0] == "expired"
    Target.objects.filter(pk=bench.target.pk).update(strips_expires=True)
    release(bench)
    bench.replay()
    (sent,) = bench.delivered()
    before, after = envelopes.opened(late.encode()), envelopes.opened(sent["Body"].encode())
    assert (before["properties"].pop("expiration"), before["headers"].pop("expires")) != (None, None)
    assert after["headers"].pop("expires", "missing") is None
    assert before == after


def test_what_expires_between_plan_and_send_is_not_sent(clock: Clock) -> None:
    bench = Workbench(target_fields=CELERY)
    soon = bury(bench, envelopes.task(expires=lanes.database_now() + timedelta(days=1)))
    bench.ready()
    assert parked(bench) == {}
    clock.advance(2 * 86_400)
    bench.replay()
    assert bench.delivered() == []
    assert parked(bench)[soon][0] == "expired"


@pytest.mark.soak
@pytest.mark.parametrize(("kind", "chunks"), [("celery", [17, 1]), ("sqs", [18])])
def test_of_workers_letters_the_bodies_are_read_sixteen_mebibytes_at_a_time(
    kind: str, chunks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    read, real = list[int](), placement.unplaced_letters

    def counted(
        dlq: int, *, bodies: bool, above: int, tried: bool, failed: dict[int, PayloadUnreadable]
    ) -> UnplacedLetters | None:
        found = real(dlq, bodies=bodies, above=above, tried=tried, failed=failed)
        if found is not None:
            read.append(len(found.readable))
            assert {bool(one.body) for one in found.readable} == {kind == "celery"}
        return found

    bench = Workbench(target_fields={"kind": kind})
    for _ in range(18):
        bench.bury("x" * 1_000_000)
    bench.capture()
    placement.place_again(bench.dlq.pk)
    monkeypatch.setattr(placement, "unplaced_letters", counted)
    assert (plan.place_captured(bench.dlq).placed, read) == (18, chunks)


def test_a_letter_whose_place_was_not_known_goes_on_a_persons_word_without_another_objection() -> None:
    bench = Workbench(target_fields=CELERY, fields={"ordering_key": "attribute:key"})
    part = bury(bench, part_of_a_group())
    bench.ready()
    assert parked(bench)[part][0] == "no_ordering_key"
    bench.dlq.missing_key = "lane"
    bench.dlq.save(update_fields=["missing_key"])
    release(bench)
    assert bench.letter().blocked_reason == ""
    bench.replay()
    assert bench.delivered_bodies() == [part]


def test_a_task_that_is_diverted_names_the_queue_it_goes_to() -> None:
    bench = Workbench(target_fields=CELERY)
    target = bench.another_target(kind="celery", rate=None)
    other = target.url
    body = bury(bench, envelopes.task(queue=bench.name))
    bench.ready()
    Letter.objects.filter(dlq=bench.dlq).update(target=target)
    bench.replay()
    (sent,) = bench.delivered(other)
    before: Any = envelopes.opened(body.encode())
    before["properties"]["delivery_info"]["routing_key"] = other.rpartition("/")[2]
    assert envelopes.opened(sent["Body"].encode()) == before


# Celery workers hand nothing on: a task that was changed on its way is still the letter when it comes back


def tried(queue: str) -> str:
    document = envelopes.document(lambda app: app.send_task("shop.charge", (1,), queue=queue), queue=queue)
    document["headers"]["retries"] = 3
    return json.dumps(document)


def _sent(bench: Workbench, body: str) -> dict[str, Any]:
    """Redrive one letter; return it as it was delivered."""
    bench.redrive(body)
    [sent] = bench.delivered()
    return sent


@pytest.mark.parametrize("diverted", [False, True])
def test_one_whose_retries_were_reset_is_known_when_it_comes_back_and_goes_again(*, diverted: bool) -> None:
    bench = Workbench(target_fields=RESETS)
    body = tried(bench.name)
    bench.enqueue(body)
    url = bench.queue(f"{bench.name}-other") if diverted else bench.source_url
    if diverted:
        other = Target.objects.create(arn=bench.arn(url), url=url, region="eu-west-1", rate=None, **RESETS)
        Letter.objects.filter(dlq=bench.dlq).update(target=other)
    bench.replay()
    [sent] = bench.delivered(url)
    document = envelopes.opened(sent["Body"].encode())
    assert document["headers"]["retries"] == 0
    assert document["properties"]["delivery_info"]["routing_key"] == url.rpartition("/")[2]
    assert sent["Body"] != body
    captured = bench.take_back(sent).captured
    assert (captured.returns, captured.letters) == (1, 0)
    assert bench.history() == [(1, "accepted", 0)]
    assert (bench.letter().state, bytes(bench.letter().payload.body).decode()) == ("waiting", body)
    bench.replay()
    assert bench.history() == [(1, "accepted", 0), (2, "accepted", 1)]


def test_of_another_kind_of_target_a_changed_body_is_a_letter_of_its_own() -> None:
    """Whoever changed it handed it on."""
    bench = Workbench()
    sent = _sent(bench, "as it was")
    captured = bench.take_back({**sent, "Body": "changed"}).captured
    assert (captured.returns, captured.letters) == (0, 1)
