"""Somebody mistyped the ordering key. Whenever it is noticed, the letters find their places by the right one."""

from __future__ import annotations

import hashlib
from unittest import mock

import pytest

from reprocessing.models import DeadLetterQueue, Lane, Letter, Source
from reprocessing.pipeline.capture import find_source
from reprocessing.pipeline.parking_lot import act_on_parked
from reprocessing.pipeline.runs import plan
from reprocessing.store.ordering import placement
from tests.reprocessing.pipeline.bench import Workbench

pytestmark = pytest.mark.django_db(transaction=True)


def _mistyped() -> Workbench:
    bench = Workbench(fields={"ordering_key": "attribute:acount", "sequence": "attribute:n"})
    for number in (2, 1, 3):
        bench.bury(f"{number}", key="anna", n=f"{number}")
    bench.capture()
    plan.place_captured(bench.dlq)
    return bench


def _corrected(bench: Workbench) -> None:
    DeadLetterQueue.objects.update(ordering_key="attribute:key")
    bench.dlq.refresh_from_db()


def _in_order(bench: Workbench) -> list[str]:
    bench.replay()
    return [entry["md5"] for entry in bench.arrivals()]


def _digests(*bodies: str) -> list[str]:
    return [hashlib.md5(body.encode()).hexdigest() for body in bodies]


def test_captured_letters_are_placed_again() -> None:
    bench = _mistyped()
    assert set(Letter.objects.values_list("blocked_reason", flat=True)) == {"no_ordering_key"}
    _corrected(bench)
    assert placement.place_again(bench.dlq.pk) == 3
    bench.enlist()
    assert (Lane.objects.count(), _in_order(bench)) == (1, _digests("1", "2", "3"))


def test_parked_letters_get_their_places_when_they_are_released() -> None:
    bench = _mistyped()
    bench.enlist()
    assert set(Letter.objects.values_list("state", flat=True)) == {"parked"}
    _corrected(bench)
    act_on_parked.release(list(Letter.objects.values_list("id", flat=True)), by="anna", reason="the key is right now")
    assert (Lane.objects.count(), _in_order(bench)) == (1, _digests("1", "2", "3"))


def test_letters_of_a_source_named_later_are_placed_too() -> None:
    bench = Workbench(fields={"ordering_key": "attribute:key", "sequence": "attribute:n"})
    Source.objects.update(arn="arn:aws:sqs:eu-west-1:000000000000:another")
    for number in (2, 1):
        bench.bury(f"{number}", key="anna", n=f"{number}")
    with mock.patch.object(find_source.Sources, "of", return_value=None):
        bench.capture()
    bench.enlist()
    assert set(Letter.objects.values_list("reason", flat=True)) == {"unknown_source"}
    act_on_parked.release(list(Letter.objects.values_list("id", flat=True)), by="anna", reason="there is but this one")
    assert (Lane.objects.count(), _in_order(bench)) == (1, _digests("1", "2"))


def test_what_still_lacks_its_key_goes_alone_when_a_person_says_so() -> None:
    bench = _mistyped()
    bench.enlist()
    act_on_parked.release(list(Letter.objects.values_list("id", flat=True)), by="anna", reason="send them anyway")
    assert Lane.objects.filter(single=True).count() == 3
    assert bench.replay().taken == 3
