"""A bulk edit edits each message that its patch fits, once, and says why it does not edit the others."""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from uuid import uuid4

import pytest
from pytest_django import DjangoAssertNumQueries

from reprocessing import conf
from reprocessing.domain.message.envelope import Attribute
from reprocessing.domain.parking_lot.bulk_edit import BulkEdit
from reprocessing.domain.parking_lot.json_patch import JsonPatch
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.models import (
    AuditAct,
    AuditEntry,
    BulkAction,
    BulkActionKind,
    DeadLetterQueue,
    Letter,
    Payload,
    PayloadKey,
    Revision,
    Run,
    Source,
)
from reprocessing.pipeline.parking_lot import act_on_parked, edit, edit_messages, preview_edit, run_bulk_actions
from reprocessing.pipeline.parking_lot.edit import Alteration, Edited, SeenLetter
from reprocessing.store import rows
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.parking_lot import bulk_actions, message_edits
from reprocessing.store.payloads import content, payload_keys, removal
from tests.race.abreast import together
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, parked
from tests.reprocessing.payload_rings import Rings, encrypted, rings
from tests.reprocessing.pipeline.bench import Clock, Killed

__all__ = ["encrypted", "rings"]

pytestmark = pytest.mark.django_db(transaction=True)

PATCH = '[{"op": "replace", "path": "/country", "value": "DE"}]'
ADD_ONE = '[{"op": "add", "path": "/notes/-", "value": "seen"}]'
POINTER = b'["software.amazon.payloadoffloading.PayloadS3Pointer",{"s3BucketName":"bodies","s3Key":"1"}]'


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_actions, "BATCH_LETTERS", 2)


def _wanted(patch: str = PATCH, **options: bool) -> BulkEdit:
    return BulkEdit(JsonPatch.parse(patch), **options)


def _asked(wanted: BulkEdit | None = None, criteria: MessageFilter | None = None) -> BulkAction:
    arguments = (wanted or _wanted()).arguments()
    assert bulk_actions.create(
        uuid4(), BulkActionKind.EDIT, criteria or MessageFilter(), arguments, by="ann", reason="wrong country"
    )
    return BulkAction.objects.latest("id")


def _done(wanted: BulkEdit | None = None, criteria: MessageFilter | None = None) -> BulkAction:
    operation = _asked(wanted, criteria)
    run_bulk_actions.run_bulk_action(operation.pk, seconds=9)
    operation.refresh_from_db()
    return operation


def _told(operation: BulkAction) -> tuple[str, int, int, int]:
    operation.refresh_from_db()
    return operation.state, operation.asked, operation.done, operation.letters_skipped


def _bodies() -> dict[int, bytes]:
    """The body that would be sent, of each letter that was edited."""
    return {row.letter_id: bytes(row.body) for row in Revision.objects.order_by("no")}


def _edited(letter: Letter, body: bytes, by: str = "ben") -> None:
    letter.refresh_from_db()
    assert letter.finished_at
    seen = SeenLetter(letter.finished_at, letter.revision.no if letter.revision else 0)
    done = edit.edit_letter(
        letter.pk, seen, Alteration(body, {}), names=conf.current().marks, by=by, reason="mine", replay=False
    )
    assert isinstance(done, Edited)


def test_each_message_that_the_patch_fits_is_edited_once_with_who_and_why_and_without_its_values() -> None:
    source = dlq()
    letters = [parked(source, body=b'{"n": %d, "country": "FR"}' % number) for number in range(5)]
    before = list(Payload.objects.order_by("letter").values_list("body", flat=True))
    operation = _done()
    assert _told(operation) == ("done", 5, 5, 0)
    assert _bodies() == {one.pk: b'{"n": %d, "country": "DE"}' % number for number, one in enumerate(letters)}
    assert list(Payload.objects.order_by("letter").values_list("body", flat=True)) == before
    entries = AuditEntry.objects.filter(act="edited", operation=operation).exclude(letter=None)
    assert set(entries.values_list("by", "reason")) == {("ann", "wrong country")}
    assert entries.count() == 5
    (whole,) = AuditEntry.objects.filter(letter=None).values_list("act", "after")
    assert whole == (
        "edited",
        {"filter": {"states": ["parked"]}, "letters": 5, "operations": ["replace /country"], "release": False,
         "new_keys": False, "changes_keys": False},
    )  # fmt: skip
    assert "DE" not in json.dumps(list(AuditEntry.objects.values_list("before", "after")))
    assert "patch" not in operation.arguments
    assert set(Letter.objects.values_list("state", "epoch")) == {("parked", 1)}


def test_messages_that_the_patch_does_not_fit_are_left_as_they_are_each_with_the_reason() -> None:
    source = dlq()
    source.target.size_limit = 40
    source.target.save()
    size = Attribute("Number", "9")
    fits = parked(source, body=b'{"country": "FR"}')
    reasons = {
        parked(source, body=b"{}").pk: "it has nothing at /country",
        parked(source, body=b"<xml/>").pk: "it is not JSON",
        parked(source, body=b"\xff\xfe").pk: "it is not UTF-8",
        parked(source, body=b'{"country": "DE"}').pk: "the patch changes nothing in it",
        parked(source, body=b'{"country":"F","x":"' + b"x" * 19 + b'"}').pk:
            "it would be larger than its target accepts (40 bytes)",
        parked(source, body=POINTER, attributes={"ExtendedPayloadSize": size}).pk:
            "it is a pointer to a body in S3",
    }  # fmt: skip
    operation = _done()
    assert _told(operation) == ("done", 7, 1, 6)
    assert {int(letter): why for letter, why in operation.refusals.items()} == reasons
    assert list(_bodies()) == [fits.pk]


def test_an_edited_message_is_released_in_the_same_step_if_that_was_asked_for() -> None:
    letter = parked(dlq(), body=b'{"country": "FR"}')
    assert _told(_done(_wanted(release=True))) == ("done", 1, 1, 0)
    letter.refresh_from_db()
    assert (letter.state, letter.released_by) == ("waiting", "ann")
    acts = AuditEntry.objects.filter(letter=letter).order_by("pk").values_list("act", flat=True)
    assert list(acts) == ["edited", "released"]
    assert Run.objects.count() == 1


def test_a_message_that_cannot_be_released_is_edited_and_says_so() -> None:
    letter = parked(dlq(), body=b'{"country": "FR"}')
    Source.objects.update(removed_at=database_now())
    operation = _done(_wanted(release=True))
    assert _told(operation) == ("done", 1, 0, 1)
    (why,) = operation.refusals.values()
    assert why.startswith("it is edited, but stays parked: its source was removed; add it again: ")
    assert _bodies() == {letter.pk: b'{"country": "DE"}'}


def test_a_changed_key_is_edited_only_if_a_person_confirmed_that() -> None:
    source = dlq()
    DeadLetterQueue.objects.update(ordering_key="body:country")
    parked(source, key="FR", body=b'{"country": "FR"}')
    operation = _done()
    assert _told(operation) == ("done", 1, 0, 1)
    (why,) = operation.refusals.values()
    assert why == (
        "nobody confirmed that keys may change: This changes body:country, from which the ordering key is read."
    )
    assert _told(_done(_wanted(changes_keys=True))) == ("done", 1, 1, 0)


def test_new_idempotency_keys_are_different_and_recorded() -> None:
    source = dlq()
    letters = [parked(source, body=b'{"country": "FR"}') for _ in range(2)]
    _done(_wanted(new_keys=True))
    keys = set(Letter.objects.values_list("idempotency_key", flat=True))
    assert (len(keys), None in keys) == (len(letters), False)
    after = AuditEntry.objects.filter(act="edited").exclude(letter=None).values_list("after", flat=True)
    assert [entry["new_key"] for entry in after] == [True, True]


def test_who_is_killed_within_a_batch_edits_no_message_twice(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    source = dlq()
    for _ in range(5):
        parked(source, body=b'{"notes": []}')
    operation = _asked(_wanted(ADD_ONE))
    count, batches = bulk_actions.record_batch, 0

    def dies(*arguments: object, **named: object) -> None:
        nonlocal batches
        batches += 1
        if batches == 2:
            raise Killed
        count(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(bulk_actions, "record_batch", dies)
    with pytest.raises(Killed):
        run_bulk_actions.run_bulk_action(operation.pk, seconds=9)
    assert (_told(operation), len(_bodies())) == (("running", 5, 2, 0), 2)
    clock.advance(bulk_actions.LEASE_SECONDS + 1)
    run_bulk_actions.run_bulk_action(operation.pk, seconds=9)
    assert _told(operation) == ("done", 5, 5, 0)
    assert Counter(_bodies().values()) == {b'{"notes": ["seen"]}': 5}


def test_workers_that_run_one_bulk_edit_together_edit_no_message_twice() -> None:
    source = dlq()
    for _ in range(12):
        parked(source, body=b'{"notes": []}')
    operation = _asked(_wanted(ADD_ONE))
    together([lambda: run_bulk_actions.run_bulk_action(operation.pk, seconds=9)] * 3)
    assert _told(operation) == ("done", 12, 12, 0)
    assert Counter(_bodies().values()) == {b'{"notes": ["seen"]}': 12}
    assert Revision.objects.count() == 12


def test_a_message_that_somebody_edited_after_the_preview_stays_as_it_is() -> None:
    source = dlq()
    theirs, mine = (parked(source, body=b'{"country": "FR"}') for _ in range(2))
    operation = _asked()
    _edited(theirs, b'{"country": "IT"}')
    run_bulk_actions.run_bulk_action(operation.pk, seconds=9)
    assert _told(operation) == ("done", 2, 1, 0)
    assert _bodies() == {theirs.pk: b'{"country": "IT"}', mine.pk: b'{"country": "DE"}'}


def test_a_message_that_changes_between_patching_and_writing_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    source = dlq()
    edited, released, kept = (parked(source, body=b'{"country": "FR"}') for _ in range(3))
    monkeypatch.setattr(bulk_actions, "BATCH_LETTERS", 500)
    operation = _asked()
    digests = content.digests

    def meanwhile(bodies: list[bytes]) -> list[bytes]:
        monkeypatch.setattr(content, "digests", digests)
        _edited(edited, b'{"country": "IT"}')
        act_on_parked.release([released.pk], by="ben", reason="mine")
        return digests(bodies)

    monkeypatch.setattr(content, "digests", meanwhile)
    run_bulk_actions.run_bulk_action(operation.pk, seconds=9)
    assert _told(operation) == ("done", 3, 1, 2)
    assert operation.refusals == {
        str(edited.pk): "somebody edited or parked it again meanwhile",
        str(released.pk): "it is no longer parked: it is waiting",
    }
    assert _bodies() == {edited.pk: b'{"country": "IT"}', kept.pk: b'{"country": "DE"}'}


def test_two_bulk_edits_at_once_do_not_edit_a_message_on_top_of_each_other() -> None:
    source = dlq()
    for _ in range(6):
        parked(source, body=b'{"notes": []}')
    both = [_asked(_wanted(ADD_ONE)) for _ in range(2)]
    together([lambda one=one: run_bulk_actions.run_bulk_action(one.pk, seconds=9) for one in both])  # type: ignore[misc]
    assert Counter(_bodies().values()) == {b'{"notes": ["seen"]}': 6}
    assert sum(_told(one)[2] for one in both) == 6


def test_an_edit_after_the_preview_and_before_the_batch_is_prepared_is_kept() -> None:
    letter, wanted = parked(dlq(), body=b'{"notes": []}'), _wanted(ADD_ONE)
    first, second = _asked(wanted), _asked(wanted)
    run_bulk_actions.run_bulk_action(first.pk, seconds=9)
    batch = edit_messages.prepare([letter.pk], wanted, conf.current().marks, operation=second.pk)
    apply = partial(
        edit_messages.apply, batch, wanted, by="ann", reason="w", operation=second.pk, seen_at=second.asked_at
    )  # fmt: skip
    assert rows.in_transaction(apply).done == ()
    assert _bodies() == {letter.pk: b'{"notes": ["seen"]}'}


def test_it_is_aborted_between_two_batches_and_keeps_no_patch() -> None:
    source = dlq()
    for _ in range(5):
        parked(source, body=b'{"country": "FR"}')
    operation = _asked()
    assert run_bulk_actions.run_bulk_action(operation.pk, seconds=0) is True
    assert bulk_actions.abort(operation.pk, by="ben", why="wrong")
    assert run_bulk_actions.run_bulk_action(operation.pk, seconds=9) is False
    assert (_told(operation), "patch" in operation.arguments) == (("aborted", 5, 2, 0), False)


@pytest.mark.soak
def test_a_batch_has_as_many_statements_for_many_messages_as_for_few(
    monkeypatch: pytest.MonkeyPatch, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    monkeypatch.setattr(bulk_actions, "BATCH_LETTERS", 500)
    source = dlq()
    for _ in range(60):
        parked(source, body=b'{"country": "FR"}')
    operation = _asked()
    with django_assert_max_num_queries(24):
        run_bulk_actions.run_bulk_action(operation.pk, seconds=9)
    assert _told(operation) == ("done", 60, 60, 0)


def test_revision_patch_and_filter_are_sealed_on_an_encrypted_dlq(encrypted: Rings) -> None:
    letter = parked(dlq(), body=b'{"country": "FR"}')
    operation = _asked(_wanted(PATCH.replace("DE", "canary")))
    assert "canary" not in json.dumps(operation.arguments)
    run_bulk_actions.run_bulk_action(operation.pk, seconds=9)
    revision = Revision.objects.get()
    assert (b"canary" in bytes(revision.body), bytes(revision.body)[:2]) == (False, b"\xff\x01")
    stand = message_edits.read_letter(letter.pk)
    assert stand
    assert bytes(stand.body) == b'{"country": "canary"}'
    assert payload_keys.encrypts()


def test_nothing_is_written_with_a_key_that_somebody_destroys_meanwhile(
    encrypted: Rings, monkeypatch: pytest.MonkeyPatch
) -> None:
    parked(dlq(), body=b'{"country": "FR"}')
    operation = _asked()
    digests = content.digests

    def meanwhile(bodies: list[bytes]) -> list[bytes]:
        monkeypatch.setattr(content, "digests", digests)
        gone = {"wrapped": None, "destroyed_at": database_now(), "destroyed_by": "zoe", "destroy_reason": "asked"}
        PayloadKey.objects.exclude(dlq=None).update(**gone)
        return digests(bodies)

    monkeypatch.setattr(content, "digests", meanwhile)
    run_bulk_actions.run_bulk_action(operation.pk, seconds=9)
    assert _told(operation) == ("done", 1, 0, 1)
    assert list(operation.refusals.values()) == ["a person destroyed the key of its payload"]
    assert not Revision.objects.exists()


def test_a_message_whose_body_was_deleted_is_left_alone() -> None:
    letter = parked(dlq(), body=b'{"country": "FR"}')
    operation = _asked()
    rows.in_transaction(partial(removal.remove_content, [letter.pk], AuditAct.SHREDDED, by="zoe", reason="asked"))
    run_bulk_actions.run_bulk_action(operation.pk, seconds=9)
    assert (_told(operation)[2], _bodies()) == (0, {})


def test_a_value_that_was_erased_from_a_running_patch_ends_it_if_no_patch_is_left() -> None:
    parked(dlq(), body=b'{"country": "FR"}')
    operation = _asked()
    BulkAction.objects.update(arguments=operation.arguments | {"patch": '[{"op": [erased]}]'})
    assert run_bulk_actions.run_bulk_action(operation.pk, seconds=9) is False
    assert _told(operation) == ("aborted", 1, 0, 0)
    assert (operation.aborted_by, operation.why) == ("the service", "a value in its patch was erased")


def test_the_preview_counts_what_the_edit_then_does() -> None:
    source = dlq()
    DeadLetterQueue.objects.update(idempotency_key="body:country")
    fits = [parked(source, body=b'{"country": "FR"}') for _ in range(3)]
    broken = [parked(source, body=b"<xml/>").pk for _ in range(2)]
    wanted = _wanted(changes_keys=True)
    found = preview_edit.preview(
        list(Letter.objects.values_list("pk", flat=True)), wanted, conf.current().marks, seconds=9, samples=2
    )
    assert (found.checked, found.fits, found.unfit) == (5, 3, (("it is not JSON", 2, broken[0]),))
    assert found.touched == (("This changes body:country, from which the idempotency key is read.", 3),)
    assert [one.to.body for one in found.samples] == [b'{"country": "DE"}'] * 2
    assert _told(_done(wanted)) == ("done", 5, len(fits), len(broken))


def test_a_preview_without_time_checks_one_message_and_says_how_many() -> None:
    source = dlq()
    letters = [parked(source, body=b'{"country": "FR"}').pk for _ in range(3)]
    found = preview_edit.preview(letters, _wanted(), conf.current().marks, seconds=0, samples=9)
    assert (found.checked, found.fits) == (1, 1)
