from __future__ import annotations

from datetime import date
from unittest import mock

import pytest

from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.domain.payloads import sealing
from reprocessing.models import Letter, Payload, PayloadKey
from reprocessing.pipeline.payloads import rotate
from reprocessing.store import rows
from reprocessing.store.parking_lot import message_filters
from reprocessing.store.payloads import payload_keys, resealing
from tests.reprocessing.payload_rings import NEW, OLD, Rings
from tests.reprocessing.pipeline.bench import Killed, Workbench, enqueued

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("encrypted")]
TODAY = date(2026, 3, 1)


def _rotated() -> int:
    return rotate.rewrap_keys(lambda _: None).keys


def _sealed() -> list[bool]:
    bodies = Payload.objects.order_by("pk").values_list("body", flat=True)
    return [sealing.key_id(bytes(body)) is not None for body in bodies]


def test_after_a_rotation_the_former_key_is_not_needed(rings: Rings) -> None:
    bench = enqueued("1", "2")
    rings(NEW, OLD)
    assert (_rotated(), payload_keys.used_wrapping_keys()) == (PayloadKey.objects.count(), ["new"])
    rings(NEW)
    bench.enqueue("3")
    bench.replay()
    assert sorted(bench.delivered_bodies()) == ["1", "2", "3"]


def test_a_rotation_that_was_killed_continues_where_it_ended(rings: Rings) -> None:
    for body in "123":
        enqueued(body)
    rings(NEW, OLD)
    every = PayloadKey.objects.count()
    with mock.patch.object(rotate, "_KEYS", 1), pytest.raises(Killed):
        rotate.rewrap_keys(mock.Mock(side_effect=[None, Killed]))
    assert PayloadKey.objects.filter(wrapped_by="new").count() == 2
    assert _rotated() == every - 2


def test_messages_are_captured_and_sent_between_the_steps_of_a_rotation(rings: Rings) -> None:
    bench, others = enqueued("1"), [enqueued("x") for _ in range(2)]
    rings(NEW, OLD)

    def meanwhile(_: object) -> None:
        bench.enqueue("more")
        bench.replay()

    with mock.patch.object(rotate, "_KEYS", 2):
        rotate.rewrap_keys(meanwhile)
    rings(NEW)
    bench.replay()
    found = bench.delivered_bodies()
    assert (found.count("1"), found.count("more"), len(others)) == (1, len(found) - 1, 2)


def test_what_was_stored_readable_is_sealed_and_stays_recognisable(rings: Rings) -> None:
    rings()
    bench = Workbench(fields={"idempotency_key": "attribute:idem"})
    bench.redrive("canary", idem="i")
    (sent,) = bench.delivered()
    rings(OLD)
    done = rotate.seal_readable(TODAY, lambda _: None)
    assert (done.payloads, _sealed()) == (1, [True])
    assert bench.take_back(sent).captured.returns == 1
    bench.replay()
    bench.redrive("canary", idem="i")
    assert sorted(Letter.objects.values_list("state", flat=True)) == ["delivered", "duplicate"]
    assert message_filters.count_letters(MessageFilter(text="canary", states=("delivered",))) == 1


def test_sealing_that_was_killed_continues_where_it_ended(rings: Rings) -> None:
    rings()
    bench = enqueued("1", "2", "3")
    rings(OLD)
    with mock.patch.object(resealing, "LETTERS", 1):
        with pytest.raises(Killed):
            rotate.seal_readable(TODAY, mock.Mock(side_effect=[None, Killed]))
        assert _sealed() == [True, True, False]
        assert rotate.seal_readable(TODAY, lambda _: None).payloads == 1
    bench.replay()
    assert sorted(bench.delivered_bodies()) == ["1", "2", "3"]


def test_captured_bytes_change_only_when_they_are_sealed_anew() -> None:
    enqueued("1")
    with pytest.raises(Exception, match="captured bytes never change"):
        rows.execute("UPDATE redrive_payload SET body = 'x'", {})
