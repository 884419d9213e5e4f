from __future__ import annotations

import json
from unittest import mock

import pytest
from django.db import connection
from django.db.models.functions import Now

from reprocessing.domain.message.envelope import unpack_attributes
from reprocessing.domain.message.redrive_attributes import MarkNames
from reprocessing.domain.outcomes.consumer_report import ConsumerReport
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.models import Attempt, BulkAction, Letter, Payload, PayloadKey, Report, Revision
from reprocessing.models.parking_lot import BulkActionKind
from reprocessing.pipeline.outcomes import record_reports
from reprocessing.pipeline.parking_lot import act_on_parked, edit, group_failures
from reprocessing.pipeline.parking_lot.edit import Alteration, Edited, SeenLetter
from reprocessing.store.outcomes import delivery_status
from reprocessing.store.parking_lot import bulk_actions, filtered_letters, message_edits
from reprocessing.store.payloads import payload_keys
from reprocessing.store.routing import rule_changes
from tests.reprocessing.payload_rings import NEW, OLD, Rings
from tests.reprocessing.pipeline.bench import KEYED, Workbench, enqueued

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("encrypted")]

CANARY = "canary-of-a-payload"
NAMES = MarkNames()


def _stored() -> str:
    """Return all columns of all rows that may have content, as text."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT p::text, encode(p.body, 'escape'), encode(p.attributes, 'escape') FROM redrive_payload p "
            "UNION ALL SELECT v::text, encode(v.body, 'escape'), encode(v.attributes, 'escape') "
            "FROM redrive_revision v UNION ALL SELECT r::text, '', '' FROM redrive_report r "
            "UNION ALL SELECT o::text, '', '' FROM redrive_bulk_action o "
            "UNION ALL SELECT l::text, '', '' FROM redrive_letter l"
        )
        return str(cursor.fetchall())


def _parked(bench: Workbench, body: str = json.dumps({"note": CANARY})) -> Letter:
    with bench.refusing(body, poison=True):
        bench.redrive(body, note=CANARY)
    return bench.letter(state="parked")


def _edit(letter: Letter, body: bytes) -> Edited:
    stand = message_edits.read_letter(letter.pk)
    assert stand is not None
    assert stand.finished_at is not None
    to = Alteration(body, unpack_attributes(stand.attributes))
    seen = SeenLetter(stand.finished_at, stand.revision)
    done = edit.edit_letter(letter.pk, seen, to, names=NAMES, by="ann", reason="a typo", replay=True)
    assert isinstance(done, Edited)
    return done


def test_payloads_are_stored_sealed_and_arrive_as_they_were() -> None:
    bench = Workbench(fields=KEYED)
    bench.redrive(CANARY, key="k", n="1", note=CANARY)
    (sent,) = bench.delivered()
    assert (sent["Body"], sent["MessageAttributes"]["note"]["StringValue"]) == (CANARY, CANARY)
    assert CANARY not in _stored()
    assert "SenderId" not in Payload.objects.get().system


def test_a_data_key_is_for_one_dlq_and_one_day() -> None:
    first, second = enqueued("1", "2"), enqueued("3")
    found = PayloadKey.objects.filter(dlq__isnull=False).order_by("pk").values_list("dlq", "wrapped_by")
    assert list(found) == [(first.dlq.pk, "old"), (second.dlq.pk, "old")]


def test_a_data_key_is_unwrapped_once_and_not_for_each_message() -> None:
    bench = enqueued(*map(str, range(20)))
    payload_keys.forget_unwrapped()
    with mock.patch.object(payload_keys, "_unwrap", wraps=payload_keys._unwrap) as unwrap:
        bench.replay()
    assert (len(bench.delivered()), unwrap.call_count) == (20, 1)


@pytest.mark.parametrize("before", [(OLD,), ()], ids=["captured with encryption", "captured before encryption"])
def test_a_message_that_comes_back_is_recognised_by_its_redrive_id_and_bytes(
    before: tuple[str, ...], rings: Rings
) -> None:
    rings(*before)
    bench = Workbench()
    bench.redrive(CANARY)
    (sent,) = bench.delivered()
    rings(OLD)
    assert bench.take_back(sent).captured.returns == 1
    assert bench.take_back({**sent, "Body": "another"}).captured.letters == 1


def test_equal_messages_with_one_idempotency_key_are_delivered_once() -> None:
    bench = Workbench(fields={"idempotency_key": "attribute:idem"})
    for _ in range(2):
        bench.redrive("same", idem="i")
    states = sorted(Letter.objects.values_list("state", flat=True))
    assert (len(bench.delivered()), states) == (1, ["delivered", "duplicate"])


def test_an_edit_is_stored_sealed_and_sent() -> None:
    bench = Workbench()
    letter = _parked(bench)
    _edit(letter, b'{"note": "canary-of-a-payload, edited"}')
    bench.replay()
    assert bench.delivered_bodies() == ['{"note": "canary-of-a-payload, edited"}']
    assert (Revision.objects.count(), CANARY in _stored()) == (1, False)


def test_a_text_is_found_in_sealed_bodies_captured_or_edited() -> None:
    bench = Workbench()
    letter, _ = _parked(bench), bench.enqueue("another")
    for text, found in ((CANARY, [letter.pk]), ("nobody", [])):
        criteria = MessageFilter(text=text)
        page = filtered_letters.letter_page(criteria, below=None, limit=10)
        assert ([one.id for one in page.letters], page.n, filtered_letters.count_letters(criteria)) == (
            found,
            len(found),
            len(found),
        )


def test_the_text_of_a_bulk_action_is_stored_sealed_and_finds_its_messages() -> None:
    letter = _parked(Workbench())
    token = "8b3ee62b-9bd6-4f6c-a1f6-6f0e0f1d2c3b"
    bulk_actions.create(token, BulkActionKind.NOTE, MessageFilter(text=CANARY), {}, by="ann", reason="why")  # type: ignore[arg-type]
    (action,) = BulkAction.objects.all()
    leased = bulk_actions.take_over(action.pk)
    assert leased is not None
    assert (bulk_actions.next_letters(leased), CANARY in _stored()) == ([letter.pk], False)


def test_the_text_of_a_report_is_stored_sealed() -> None:
    bench = Workbench()
    bench.redrive("1")
    letter = bench.letter()
    said = ConsumerReport(verdict="failed", public_id=letter.public_id, type="E", message=CANARY)
    for _ in range(2):
        record_reports.record_parsed([said], reporter=None, dice=lambda: 0.0)
    assert (Report.objects.count(), CANARY in _stored()) == (1, False)
    assert [reason.message for reason in delivery_status.reasons_of(letter)] == [CANARY]


@pytest.mark.soak
def test_failure_groups_are_the_same_with_encryption(rings: Rings) -> None:
    titles = []
    for keys in ((), (OLD,)):
        rings(*keys)
        bench = Workbench()
        _parked(bench)
        group_failures.assign_groups(batches=5)
        titles.append(Letter.objects.get(dlq=bench.dlq).group.title)  # type: ignore[union-attr]
    assert titles[0] == titles[1]


def test_without_its_key_a_message_is_not_sent_and_no_attempt_counts(rings: Rings) -> None:
    bench = enqueued(CANARY, "another")
    rings(NEW)
    bench.replay(seconds=1)
    found = set(Attempt.objects.values_list("outcome", "detail"))
    why = "REDRIVE_PAYLOAD_KEYS has no key old, which sealed this message. Add the key old again, behind the first key."
    assert found == {("not_sent", why)}
    assert (bench.delivered(), set(Letter.objects.values_list("attempts", flat=True))) == ([], {0})
    rings(NEW, OLD)
    Letter.objects.filter(state="waiting").update(due_at=None)
    connection.cursor().execute("UPDATE redrive_lane SET due_at = redrive_now() WHERE phase = 'ready'")
    bench.replay()
    assert sorted(bench.delivered_bodies()) == ["another", CANARY]


def test_with_rules_a_message_without_its_key_waits_and_others_are_sent(rings: Rings) -> None:
    fields = {"action": "hold", "conditions": ["attribute:held equals yes"], "enabled": True}
    rule_changes.save_rule("hold", fields, by="ann", reason="they migrate")
    rings()
    bench = enqueued("readable")
    rings(OLD)
    bench.enqueue("sealed")
    rings(NEW)
    bench.replay(seconds=1)
    assert bench.delivered_bodies() == ["readable"]
    letter = Letter.objects.get(state="waiting")
    assert (letter.rulebook_version, Attempt.objects.filter(letter=letter).exists()) == (0, False)
    assert letter.lane is not None
    assert letter.lane.why.startswith("REDRIVE_PAYLOAD_KEYS has no key old")
    rings(NEW, OLD)
    Letter.objects.filter(state="waiting").update(due_at=None)
    connection.cursor().execute("UPDATE redrive_lane SET due_at = redrive_now() WHERE phase = 'ready'")
    bench.replay()
    assert bench.delivered_bodies() == ["sealed"]


def test_messages_without_encryption_and_with_it_are_sent_side_by_side(rings: Rings) -> None:
    rings()
    bench = enqueued("readable")
    rings(OLD)
    bench.enqueue("sealed")
    bench.replay()
    assert sorted(bench.delivered_bodies()) == ["readable", "sealed"]


def test_a_parked_message_is_released_and_sent() -> None:
    bench = Workbench()
    letter = _parked(bench)
    act_on_parked.release([letter.pk], by="ann", reason="fixed")
    bench.replay()
    assert json.loads(bench.delivered_bodies()[0]) == {"note": CANARY}


def test_a_body_that_comes_back_after_it_was_deleted_is_stored_sealed() -> None:
    bench = Workbench()
    bench.redrive(CANARY)
    (sent,) = bench.delivered()
    Payload.objects.all().delete()
    Letter.objects.update(body_deleted_at=Now())
    bench.take_back(sent)
    assert (Payload.objects.count(), CANARY in _stored()) == (1, False)
    bench.replay()
    assert bench.delivered_bodies() == [CANARY]
