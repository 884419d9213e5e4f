"""Values of search fields are indexed at capture, kept true when settings change, and go with the payload."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from reprocessing import conf
from reprocessing.domain.errors import PayloadKeyUnavailable
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.models import DeadLetterQueue, Letter, Payload, PayloadKey, SearchEntry
from reprocessing.pipeline.payloads import erase, rotate, shred
from reprocessing.pipeline.runs import feed_run
from reprocessing.pipeline.search import reindex
from reprocessing.store import rows
from reprocessing.store.maintenance import body_retention, retention
from reprocessing.store.ordering import lanes
from reprocessing.store.parking_lot import filtered_letters
from reprocessing.store.payloads import payload_keys
from reprocessing.store.search import reindexing, search_settings
from tests.reprocessing.payload_rings import OLD, Rings
from tests.reprocessing.pipeline.bench import Clock, Workbench

pytestmark = pytest.mark.django_db(transaction=True)

ORDERS = {"search_fields": ["order_id=body:order.id", "customer=attribute:customer"]}


def _order(number: int, **more: object) -> str:
    return json.dumps({"order": {"id": number}, **more})


def _bench(**fields: Any) -> Workbench:  # noqa: ANN401  columns of a DLQ
    return Workbench(fields={**ORDERS, **fields})


def _captured(*numbers: int, **fields: Any) -> Workbench:  # noqa: ANN401  as above
    bench = _bench(**fields)
    for number in numbers:
        bench.bury(_order(number), customer="ann")
    bench.capture()
    assert reindex.reindex_dlqs(seconds=10)
    return bench


def _found(*fields: str, reveals: bool = False, named: str | None = None) -> int:
    criteria = MessageFilter(states=(), fields=fields, named=named, reveals=reveals)
    return filtered_letters.count_letters(criteria)


def _entries() -> set[tuple[str, str]]:
    return set(SearchEntry.objects.values_list("name", "value"))


def _change(bench: Workbench, **fields: object) -> None:
    DeadLetterQueue.objects.filter(pk=bench.dlq.pk).update(**fields)


def test_values_are_indexed_as_messages_are_captured() -> None:
    bench = _bench()
    bench.bury(_order(4711), customer="ann")
    bench.bury("no json")
    bench.capture()
    assert _entries() == {("order_id", "4711"), ("customer", "ann")}
    assert [_found(text) for text in ("order_id:4711", "order_id:47*", "order_id:471")] == [1, 1, 0]
    assert _found(named="4711") == 1
    assert _found("order_id:4711", "customer:ann") == 1
    assert _found("order_id:4711", "customer:bob") == 0


def test_a_chunk_of_messages_is_indexed_by_the_statement_that_writes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = _bench()
    for number in range(30):
        bench.bury(_order(number))
    run, seen = rows._execute, list[str]()

    def noting(cursor: Any, statement: Any, parameters: Any) -> None:  # noqa: ANN401  psycopg's
        seen.append(statement)
        run(cursor, statement, parameters)

    monkeypatch.setattr(rows, "_execute", noting)
    chunks = bench.capture().captured
    assert (chunks.letters, SearchEntry.objects.count()) == (30, 30)
    writes = [statement for statement in seen if "redrive_search_entry" in statement]
    assert 0 < len(writes) < 10
    assert all("INSERT INTO redrive_letter" in statement for statement in writes)


def test_a_capture_that_read_former_settings_reads_them_again() -> None:
    bench = _bench(search_fields=[])
    bench.bury(_order(4711))
    seen = DeadLetterQueue.objects.get(pk=bench.dlq.pk)
    _change(bench, **ORDERS)
    assert reindex.reindex_dlqs(seconds=10)
    feed_run.poll_dlq(seen, conf=bench.conf, dice=lambda: 0.0, seconds=10)
    assert _entries() == {("order_id", "4711")}


@pytest.mark.parametrize(
    ("change", "left"),
    [
        ({"search_fields": ["number=body:order.id"]}, {("number", "1"), ("number", "2")}),
        ({"search_fields": []}, set()),
    ],
    ids=["another name", "none"],
)
def test_stored_messages_are_indexed_again_when_the_fields_change(
    change: dict[str, object], left: set[tuple[str, str]]
) -> None:
    bench = _captured(1, 2)
    _change(bench, **change)
    assert reindex.reindex_dlqs(seconds=10)
    assert _entries() == left
    assert DeadLetterQueue.objects.get(pk=bench.dlq.pk).search_reindex_below is None


def test_messages_that_were_captured_before_the_declaration_are_found() -> None:
    bench = _captured(7, search_fields=[])
    assert _found("order_id:7") == 0
    _change(bench, **ORDERS)
    assert reindex.reindex_dlqs(seconds=10)
    assert _found("order_id:7") == 1


def test_an_interrupted_index_is_continued_and_the_newest_messages_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = _captured(*range(5), search_fields=[])
    monkeypatch.setattr(reindexing, "LETTERS", 2)
    _change(bench, **ORDERS)
    assert not reindex.reindex_dlqs(seconds=0)
    assert SearchEntry.objects.count() == 0
    (settings,) = search_settings.all_settings()
    part = reindexing.next_part(settings)
    assert part.letters == list(Letter.objects.order_by("-pk").values_list("pk", flat=True)[:2])
    assert reindexing.write_part(settings, part, [], [])
    assert not reindexing.write_part(settings, part, [], [])  # another worker was faster
    assert reindex.reindex_dlqs(seconds=10)
    assert SearchEntry.objects.filter(name="order_id").count() == 3


def test_a_batch_reads_a_part_of_the_ids_only(monkeypatch: pytest.MonkeyPatch) -> None:
    _captured(1, 2)
    first, last = Letter.objects.order_by("pk").values_list("pk", flat=True)
    (settings,) = search_settings.all_settings()
    monkeypatch.setattr(reindexing, "SPAN", 1)
    assert reindexing.next_part(replace(settings, below=last + 1)) == reindexing.Part([last], last)
    assert reindexing.next_part(replace(settings, below=first)) == reindexing.Part([], first - 1)
    assert reindexing.next_part(replace(settings, below=1)) == reindexing.Part([], 0)


def test_masked_values_are_found_only_by_people_who_may_reveal_them() -> None:
    _captured(4711, masked_fields=["id"])
    assert (_found("order_id:4711"), _found("order_id:4711", reveals=True), _found("customer:ann")) == (0, 1, 1)
    assert (_found(named="4711"), _found(named="4711", reveals=True)) == (0, 1)


def test_nobody_finds_values_that_became_masked_until_they_are_indexed_again() -> None:
    bench = _captured(4711)
    _change(bench, masked_fields=["email"])
    assert (_found("order_id:4711"), _found("order_id:4711", reveals=True)) == (0, 1)
    assert reindex.reindex_dlqs(seconds=10)
    assert _found("order_id:4711") == 1


def test_masked_fields_of_all_dlqs_count_too(monkeypatch: pytest.MonkeyPatch) -> None:
    _captured(4711)
    view = replace(conf.current(), masked_fields=("id",))
    monkeypatch.setattr(conf, "current", lambda: view)
    assert _found("order_id:4711") == 0
    assert reindex.reindex_dlqs(seconds=10)
    assert (_found("order_id:4711"), _found("customer:ann")) == (0, 1)


@pytest.mark.parametrize("ends", ["erased", "shredded", "history", "bodies"])
def test_entries_go_with_the_payload(ends: str, clock: Clock) -> None:
    bench = _captured(4711, 4712, keep_bodies=1)
    assert SearchEntry.objects.count() == 4
    letters = list(Letter.objects.values_list("pk", flat=True))
    Letter.objects.filter(pk__in=letters if ends in {"history", "bodies"} else []).update(
        state="discarded", finished_at=lanes.database_now()
    )
    clock.advance(20 * 86_400)
    actions: dict[str, Callable[[], object]] = {
        "erased": _erase,
        "shredded": lambda: shred.shred_messages(letters, by="ann", reason="asked"),
        "history": lambda: retention.delete_letters(bench.dlq.pk, history=86_400, limit=10),
        "bodies": lambda: body_retention.delete_bodies(bench.dlq.pk, limit=10),
    }
    actions[ends]()
    assert (Payload.objects.count(), SearchEntry.objects.count()) == (0, 0)


def _erase() -> None:
    for number in ("4711", "4712"):
        about = MessageFilter(states=(), fields=(f"order_id:{number}",), reveals=True)
        erase.erase(about, by="ann", reason="asked", on_progress=lambda _: None)


def test_a_body_that_comes_back_after_its_retention_is_found_again() -> None:
    bench = _bench(keep_bodies=0, max_attempts=5)
    bench.redrive(_order(4711))
    assert reindex.reindex_dlqs(seconds=10)
    (sent,) = bench.delivered()
    body_retention.delete_bodies(bench.dlq.pk, limit=10)
    assert _found("order_id:4711") == 0
    assert bench.take_back(sent).captured.returns == 1
    assert _found("order_id:4711") == 1


@pytest.mark.usefixtures("encrypted")
def test_values_of_encrypted_dlqs_are_hashes_that_only_equality_finds() -> None:
    _captured(4711)
    assert [value[0] for _, value in _entries()] == ["\x1a", "\x1a"]
    assert (_found("order_id:4711"), _found("order_id:47*"), _found(named="4711"), _found(named="ann")) == (1, 0, 1, 1)
    assert _found(*[f"order_id:{value}" for name, value in _entries() if name == "order_id"]) == 1


@pytest.mark.usefixtures("encrypted")
def test_two_dlqs_have_different_hashes_of_the_same_value() -> None:
    _captured(4711)
    _captured(4711)
    assert len(_entries()) == 4
    assert _found("order_id:4711") == 2


@pytest.mark.usefixtures("encrypted")
def test_after_shredding_no_key_is_left_that_tells_a_guessed_value() -> None:
    bench = _captured(4711)
    hashes = _entries()
    shred.shred_dlq(bench.dlq, by="ann", reason="the customer left", on_progress=lambda _: None)
    assert (SearchEntry.objects.count(), payload_keys.search_keys([bench.dlq.pk])) == (0, {})
    bench.bury(_order(4711), customer="ann")
    bench.capture()
    assert _found("order_id:4711") == 1
    assert _entries().isdisjoint(hashes)


@pytest.mark.usefixtures("encrypted")
@pytest.mark.parametrize("reads_again", [True, False])
def test_a_capture_with_a_destroyed_search_key_reads_the_keys_again_or_stores_nothing(
    monkeypatch: pytest.MonkeyPatch, *, reads_again: bool
) -> None:
    bench = _captured(1)
    known = payload_keys.current_key((bench.dlq.pk, None))
    assert known is not None
    shred.shred_dlq(bench.dlq, by="ann", reason="the customer left", on_progress=lambda _: None)
    payload_keys._unwrapped.add(known, (bench.dlq.pk, None), current=True)
    if not reads_again:
        monkeypatch.setattr(payload_keys, "forget_unwrapped", lambda: None)
    bench.bury(_order(2))
    drained = bench.capture().captured.drained
    assert (drained, Payload.objects.count()) == (reads_again, int(reads_again))
    assert bench.left() > 0


def test_readable_values_become_hashes_when_payloads_are_encrypted(rings: Rings) -> None:
    _captured(4711)
    rings(OLD)
    rotate.seal_readable(lanes.database_now().date(), lambda _: None)
    assert [value[0] for _, value in _entries()] == ["\x1a", "\x1a"]
    assert _found("order_id:4711") == 1


def _change_keys(bench: Workbench, *, searches: bool, **values: object) -> None:
    """Change the data key of the payloads of a DLQ, or the key of its search values."""
    PayloadKey.objects.filter(dlq=bench.dlq, day__isnull=searches).update(**values)
    payload_keys.forget_unwrapped()


def _indexed(name: str) -> list[int]:
    return list(SearchEntry.objects.filter(name=name).order_by("dlq_id").values_list("dlq_id", flat=True))


@pytest.mark.parametrize("searches", [False, True], ids=["of payloads", "of search values"])
@pytest.mark.usefixtures("encrypted")
def test_messages_whose_key_is_missing_are_indexed_when_it_is_back_and_those_of_other_dlqs_at_once(
    searches: bool,
) -> None:
    first, second = sorted((_captured(1), _captured(2)), key=lambda bench: bench.name)
    for bench in (first, second):
        _change(bench, search_fields=["number=body:order.id"])
    _change_keys(first, searches=searches, wrapped_by="former")
    with pytest.raises(PayloadKeyUnavailable, match="former"):
        reindex.reindex_dlqs(seconds=10)
    assert (_indexed("number"), _indexed("order_id")) == ([second.dlq.pk], [first.dlq.pk])
    _change_keys(first, searches=searches, wrapped_by="old")
    assert reindex.reindex_dlqs(seconds=10)
    assert (_indexed("number"), _indexed("order_id")) == (sorted([first.dlq.pk, second.dlq.pk]), [])


@pytest.mark.usefixtures("encrypted")
def test_messages_whose_key_was_destroyed_do_not_stop_the_index() -> None:
    bench = _captured(1)
    _change(bench, search_fields=["number=body:order.id"])
    gone = {"destroyed_at": lanes.database_now(), "destroyed_by": "ann", "destroy_reason": "asked"}
    _change_keys(bench, searches=False, wrapped=None, **gone)
    assert reindex.reindex_dlqs(seconds=10)
    assert SearchEntry.objects.count() == 0
