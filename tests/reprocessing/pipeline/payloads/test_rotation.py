from __future__ import annotations

from datetime import date
from unittest import mock
from uuid import uuid4

import pytest

from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.domain.payloads import sealing
from reprocessing.domain.payloads.sealing import Part
from reprocessing.models import BulkAction, BulkActionKind, Letter, Payload, PayloadKey, Report
from reprocessing.pipeline.payloads import rotate
from reprocessing.store import rows
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.parking_lot import bulk_actions, filtered_letters
from reprocessing.store.payloads import content, payload_keys, resealing
from reprocessing.store.search import stored_filters
from tests.reprocessing.payload_rings import NEW, OLD, Rings
from tests.reprocessing.pipeline.approvals.two_people import asked, limited
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


@pytest.mark.soak
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
    assert filtered_letters.count_letters(MessageFilter(text="canary", states=("delivered",))) == 1


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


def test_a_report_that_is_erased_while_texts_are_sealed_stays_erased(rings: Rings) -> None:
    rings()
    now = database_now()
    said = {"verdict": "failed", "type": "Error", "message": "no such canary", "happened_at": now, "received_at": now}
    Report.objects.create(message_id="1", digest=b"d", **said)
    rings(OLD)
    seals = content.sealed_text

    def erased_meanwhile(text: str, part: Part) -> str:
        Report.objects.update(message="")
        return seals(text, part)

    with mock.patch.object(content, "sealed_text", erased_meanwhile):
        rotate.seal_readable(TODAY, lambda _: None)
    assert Report.objects.get().message == ""


def test_texts_of_filters_are_sealed_also_in_requests_for_approval(rings: Rings) -> None:
    rings()
    letters = limited(letters=1)
    criteria = MessageFilter(states=("parked",), dlq=letters[0].dlq_id, text="{}")

    def discard() -> None:
        bulk_actions.create(uuid4(), BulkActionKind.DISCARD, criteria, {}, by="ann", reason="obsolete")

    bulk_actions.create(uuid4(), BulkActionKind.NOTE, criteria, {}, by="ann", reason="looked at")
    row = asked(discard)
    rings(OLD)
    assert rotate.seal_readable(TODAY, lambda _: None).texts == 2
    row.refresh_from_db()
    stored = [row.arguments["filter"], BulkAction.objects.get().filter]
    assert [stored_filters.read_filter(one) for one in stored] == [criteria, criteria]
    assert [one["text"][0] for one in stored] == ["\x1a", "\x1a"]


def test_captured_bytes_change_only_when_they_are_sealed_anew() -> None:
    enqueued("1")
    with pytest.raises(Exception, match="captured bytes never change"):
        rows.execute("UPDATE redrive_payload SET body = 'x'", {})
