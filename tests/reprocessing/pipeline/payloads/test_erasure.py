from __future__ import annotations

import json
from datetime import timedelta
from unittest import mock
from uuid import uuid4

import pytest
from django.db import connection

from reprocessing.domain.approvals.requested_action import ApprovalNeeded
from reprocessing.domain.errors import InvalidFilter
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.models import (
    ApiCall,
    ApiToken,
    AuditEntry,
    BulkAction,
    BulkActionKind,
    Claim,
    DeadLetterQueue,
    Erasure,
    FailureGroup,
    GlobalStop,
    Lane,
    Letter,
    Payload,
    Revision,
    Run,
)
from reprocessing.pipeline.approvals import decide, request
from reprocessing.pipeline.payloads import erase
from reprocessing.store.ordering import lanes
from reprocessing.store.parking_lot import bulk_actions
from reprocessing.store.payloads import erasure
from reprocessing.store.search import stored_filters
from tests.reprocessing.payload_rings import Rings
from tests.reprocessing.pipeline.bench import KEYED, Killed, Workbench

pytestmark = pytest.mark.django_db(transaction=True)

PERSON = "ann@example.com"
FIELDS = {**KEYED, "idempotency_key": "attribute:key"}


def _bench() -> Workbench:
    """A delivered, a parked and a captured message of a person, history about them, and a message of another person."""
    bench = Workbench(fields=FIELDS)
    bench.redrive(json.dumps({"mail": PERSON}), key=PERSON, n="1")
    with bench.refusing("2", poison=True):
        bench.redrive("2", key=PERSON, n="2")
    bench.bury("3", key=PERSON, n="3")
    bench.bury("of another", key="bob@example.com", n="1")
    bench.capture()
    now = lanes.database_now()
    FailureGroup.objects.create(
        dlq=bench.dlq, fingerprint=b"f", cause="reported", title="t", note=f"wrote {PERSON}", first_at=now, last_at=now
    )
    AuditEntry.objects.create(
        act="noted", dlq=bench.dlq, by="eva", reason=f"{PERSON} called", after={"who": f'"{PERSON}"'}
    )
    Run.objects.update(selection={"key": PERSON})
    return bench


def _erase(criteria: MessageFilter | None = None) -> erase.Erased:
    chosen = criteria or MessageFilter(states=(), key=PERSON)
    return erase.erase(chosen, by="eva", reason="request 17", on_progress=lambda _: None)


def _everywhere(text: str) -> list[str]:
    """Return the tables that hold a text in any column, binary ones included."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename LIKE 'redrive_%%'")
        tables = [name for (name,) in cursor.fetchall()]
        found = []
        for table in tables:
            cursor.execute(f"SELECT count(*) FROM {table} t WHERE t::text LIKE %s OR t::text LIKE %s",
                           [f"%{text}%", f"%{text.encode().hex()}%"])  # fmt: skip
            found += [table] if cursor.fetchone()[0] else []
    return sorted(found)


@pytest.mark.soak
def test_after_an_erasure_no_table_has_the_value() -> None:
    bench = _bench()
    assert len(_everywhere(PERSON)) > 5
    done = _erase()
    assert (done.busy, _everywhere(PERSON)) == (0, [])
    assert (done.counts["messages"], done.counts["payloads"], Payload.objects.count()) == (3, 3, 1)
    bench.enlist()
    bench.replay()
    assert bench.delivered_bodies()[-1] == "of another"
    assert set(Letter.objects.values_list("state", flat=True)) == {"delivered", "discarded"}


@pytest.mark.soak
def test_the_certificate_has_counts_and_times_but_not_the_value() -> None:
    _bench()
    done = _erase()
    entry = AuditEntry.objects.get(act="erased", letter=None)
    assert (entry.by, entry.reason, entry.after["erasure"], entry.after["counts"]) == (
        "eva", "request 17", done.erasure, done.counts,
    )  # fmt: skip
    assert set(entry.after) == {"erasure", "value_digest", "started", "finished", "counts"}
    assert done.counts["history of audit_entry"] > 0
    assert AuditEntry.objects.filter(act="erased", letter__isnull=False, after__erasure=done.erasure).count() == 3


@pytest.mark.soak
def test_messages_in_progress_are_left_and_a_second_call_finishes() -> None:
    bench = _bench()
    bench.enlist()
    first = _erase()
    assert (first.busy, Erasure.objects.get().finished_at) == (1, None)
    bench.replay()
    second = _erase()
    assert (second.busy, second.erasure, second.counts["messages"], _everywhere(PERSON)) == (0, first.erasure, 3, [])


@pytest.mark.soak
def test_an_erasure_that_was_killed_continues_with_its_counts() -> None:
    _bench()
    told = mock.Mock(side_effect=[None, Killed])
    with mock.patch.object(erase, "BATCH", 1), pytest.raises(Killed):
        erase.erase(MessageFilter(states=(), key=PERSON), by="eva", reason="request 17", on_progress=told)
    assert Payload.objects.count() == 2
    done = _erase()
    assert (done.counts["messages"], done.counts["payloads"], _everywhere(PERSON)) == (3, 3, [])
    assert Erasure.objects.get().finished_at is not None


def test_a_text_in_bodies_selects_messages() -> None:
    bench = _bench()
    assert erase.count_erasable(MessageFilter(states=(), text=PERSON, dlq=bench.dlq.pk)).letters == 1
    _erase(MessageFilter(states=(), text=PERSON, dlq=bench.dlq.pk))
    assert Payload.objects.count() == 3


@pytest.mark.soak
def test_a_key_queue_is_used_again_by_new_messages_of_the_key() -> None:
    bench = _bench()
    _erase()
    assert (Lane.objects.filter(key=PERSON).count(), Claim.objects.exclude(letter__state="delivered").count()) == (0, 0)
    bench.redrive("4", key=PERSON, n="4")
    assert bench.delivered_bodies()[-1] == "4"


def test_an_erasure_without_confirmation_changes_nothing() -> None:
    _bench()
    before = _everywhere(PERSON)
    found = erase.count_erasable(MessageFilter(states=(), key=PERSON))
    assert (found.letters, found.busy, set(found.history) >= {"audit_entry", "failure_group", "run"}) == (3, 0, True)
    assert _everywhere(PERSON) == before


@pytest.mark.parametrize(
    "criteria",
    [
        MessageFilter(states=()), MessageFilter(text="abc"), MessageFilter(named="abc"),
        MessageFilter(key="abcd", text="efgh"),
    ],
    ids=["none", "short text", "short name", "two"],
)  # fmt: skip
def test_an_erasure_is_about_one_value_of_some_length(criteria: MessageFilter) -> None:
    with pytest.raises(InvalidFilter):
        erase.value_of(criteria)


def test_history_stays_as_it_is_outside_an_erasure() -> None:
    entry = AuditEntry.objects.create(act="noted", by="eva", reason="called")
    with pytest.raises(Exception, match="is written once"):
        AuditEntry.objects.filter(pk=entry.pk).update(reason=erasure.ERASED)


def test_a_value_of_digits_is_erased_from_texts_and_numbers_stay() -> None:
    bench = Workbench(fields=FIELDS)
    bench.bury("1", key="4711", n="1")
    bench.capture()
    entry = AuditEntry.objects.create(
        act="noted", dlq=bench.dlq, by="eva", reason="of 4711", after={"letters": 147112, "4711": ["4711", {"n": 4711}]}
    )
    only_numbers = AuditEntry.objects.create(act="noted", dlq=bench.dlq, by="eva", reason="x", after={"letters": 4711})
    done = _erase(MessageFilter(states=(), key="4711"))
    entry.refresh_from_db()
    only_numbers.refresh_from_db()
    assert (entry.reason, entry.after) == ("of [erased]", {"letters": 147112, "[erased]": ["[erased]", {"n": 4711}]})
    assert only_numbers.after == {"letters": 4711}
    assert done.counts["history of audit_entry"] == 1


@pytest.mark.soak
def test_the_value_is_erased_from_approvals_reasons_of_edits_and_stops_names_of_groups_and_answers_of_the_api() -> None:
    bench = _bench()
    another = Letter.objects.exclude(ordering_key=PERSON).get()
    stopped = {"stopped_at": lanes.database_now(), "stopped_by": "ann", "stop_reason": f"{PERSON} called"}
    DeadLetterQueue.objects.filter(pk=bench.dlq.pk).update(approval_above=0, **stopped)
    criteria = MessageFilter(states=("parked",), key=PERSON)
    discard = BulkActionKind.DISCARD
    with pytest.raises(ApprovalNeeded) as needed:
        bulk_actions.create(uuid4(), discard, criteria, {}, by="ann", reason=f"{PERSON} asked for it")
    row = request.request(needed.value, by="ann", reason=f"{PERSON} asked for it", lasts=timedelta(days=1))
    decide.decline(row.pk, by="bob", reason=f"I called {PERSON}")
    Revision.objects.create(
        letter=another, no=1, body=b"x", attributes=b"[]", body_hash=b"x", previous_body_hash=b"y", size=1, by="cleo",
        reason=f"as {PERSON} wrote",
    )  # fmt: skip
    FailureGroup.objects.update(name=f"of {PERSON}")
    GlobalStop.objects.create(by="ann", reason=f"{PERSON} called")
    token = ApiToken.objects.create(name="ci", token_hash=b"x", scopes=["messages:read"], added_by="ann")
    ApiCall.objects.create(
        token=token, key="k", request_hash=b"x", status=200, answer=json.dumps({"key": PERSON}).encode(),
        made_at=lanes.database_now(),
    )  # fmt: skip
    DeadLetterQueue.objects.filter(pk=bench.dlq.pk).update(approval_above=None)
    _erase()
    assert _everywhere(PERSON) == []
    row.refresh_from_db()
    assert (row.reason, row.decision_reason) == ("[erased] asked for it", "I called [erased]")


@pytest.mark.soak
def test_a_text_that_people_searched_for_is_erased_from_encrypted_filters(encrypted: Rings) -> None:
    bench = _bench()
    criteria = MessageFilter(states=("parked",), dlq=bench.dlq.pk, text=f"mail: {PERSON}")
    bulk_actions.create(uuid4(), BulkActionKind.NOTE, criteria, {}, by="ann", reason="looked at")
    _erase()
    assert stored_filters.read_filter(BulkAction.objects.get().filter).text == "mail: [erased]"
