"""Searches by id, key and search field use indexes, also among many letters, and find only what a person sees."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from dataclasses import replace

import pytest
from django.db import connection, transaction

from reprocessing.domain.errors import InvalidFilter
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.models import DeadLetterQueue, Letter
from reprocessing.pipeline.runs import feed_run
from reprocessing.store.parking_lot import filtered_letters
from reprocessing.store.search import filter_conditions, found_letters, search_settings
from tests.reprocessing.pipeline.bench import Workbench
from tests.reprocessing.store.explained import explained
from tests.reprocessing.store.seeded_letters import TABLES, nothing_is_vacuumed, seed, with_statistics

pytestmark = [pytest.mark.django_db(transaction=True)]

LETTERS = 20_000
#: Buffers of a search for one message: a few descents in indexes.
MOST = 400

_ENTRIES = """
INSERT INTO redrive_search_entry (letter_id, dlq_id, name, value, masked)
SELECT l.id, l.dlq_id, f.name, CASE f.name WHEN 'tenant' THEN 'acme' ELSE l.id::text END, false
  FROM redrive_letter l CROSS JOIN (VALUES ('order_id'), ('invoice'), ('tenant')) f(name)
"""


def _declared() -> Workbench:
    bench = Workbench(fields={"search_fields": [f"{name}=body:{name}" for name in ("order_id", "invoice", "tenant")]})
    (settings,) = search_settings.all_settings()
    DeadLetterQueue.objects.update(search_indexed_for=settings.digest)
    return bench


@pytest.mark.soak
@pytest.mark.timeout(300)
def test_a_search_reads_only_what_it_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        filter_conditions, "search_timeout", nullcontext
    )  # sets a time limit, which cannot be explained
    with nothing_is_vacuumed():
        bench = _declared()
        run = feed_run.automatic_run(bench.dlq)
        seed(bench, run, 1, LETTERS)
        with connection.cursor() as cursor:
            cursor.execute(_ENTRIES)
        with_statistics()
        letter = Letter.objects.order_by("pk")[LETTERS // 2]
        searches = {
            "field": MessageFilter(states=(), fields=(f"order_id:{letter.pk}",)),
            "two fields": MessageFilter(states=(), fields=(f"order_id:{letter.pk}", "tenant:acme")),
            "prefix": MessageFilter(states=(), fields=(f"order_id:{str(letter.pk)[:-1]}*",)),
            "value of any field": MessageFilter(states=(), named=str(letter.pk)),
            "message id": MessageFilter(states=(), named=letter.message_id),
            "redrive id": MessageFilter(states=(), named=str(letter.public_id)),
            "key": MessageFilter(states=(), key=letter.ordering_key),
            "nothing": MessageFilter(states=(), named="no such text"),
            "field in a run": MessageFilter(states=(), fields=(f"order_id:{letter.pk}",), run=run.pk),
            "value in a run": MessageFilter(states=(), named=str(letter.pk), run=run.pk),
            "key in a run": MessageFilter(states=(), key=letter.ordering_key, run=run.pk),
        }
        seen, found = dict[str, tuple[int, set[str]]](), dict[str, bool]()
        for name, criteria in searches.items():
            with explained() as statements:
                page = found_letters.find_letters(criteria, below=None, limit=51)
                found_letters.newest_ids(criteria, limit=1_001)
            found[name] = letter.pk in {one.id for one in page.letters}
            scanned = {table for statement in statements for table in statement.scanned}
            seen[name] = max(statement.buffers for statement in statements), scanned & {*TABLES, "redrive_search_entry"}
    assert found == {name: name != "nothing" for name in searches}
    assert {name: scanned for name, (_, scanned) in seen.items()} == {name: set() for name in searches}
    assert {name: buffers for name, (buffers, _) in seen.items() if buffers > MOST} == {}


_OLD = """
INSERT INTO redrive_search_entry (letter_id, dlq_id, name, value, masked)
SELECT l.id, l.dlq_id, 'tenant', 'old', false FROM redrive_letter l ORDER BY l.id LIMIT 2000
"""


@pytest.mark.soak
@pytest.mark.timeout(300)
def test_a_page_of_many_old_messages_reads_only_the_messages_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filter_conditions, "search_timeout", nullcontext)  # as above
    monkeypatch.setattr(found_letters, "MAX_INDEXED", 50)
    with nothing_is_vacuumed():
        bench = _declared()
        seed(bench, feed_run.automatic_run(bench.dlq), 1, LETTERS)
        with connection.cursor() as cursor:
            cursor.execute(_OLD)
            cursor.execute("VACUUM redrive_search_entry")  # so that the index alone is read
        with_statistics()
        old = list(Letter.objects.order_by("pk").values_list("pk", flat=True)[:2_000])
        criteria, shown = MessageFilter(states=(), fields=("tenant:old",)), list[int]()
        with explained() as statements:
            for below in (None, old[1_000]):
                page = found_letters.find_letters(criteria, below=below, limit=21)
                shown += [one.id for one in page.letters]
            newest = found_letters.newest_ids(criteria, limit=21)
    assert shown == [*old[:-22:-1], *old[999:978:-1]]
    assert newest == old[:-22:-1]
    assert {statement.text: statement.buffers for statement in statements if statement.buffers > MOST} == {}


def test_a_message_that_a_word_names_twice_is_found_once() -> None:
    bench = _declared()
    bench.bury('{"order_id": "acme", "tenant": "acme"}')
    bench.capture()
    page = found_letters.find_letters(MessageFilter(states=(), named="acme"), below=None, limit=51)
    assert ([letter.id for letter in page.letters], page.n) == ([Letter.objects.get().pk], 1)


def _limits() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('statement_timeout'), current_setting('plan_cache_mode')")
        return list(cursor.fetchone())


def test_a_search_inside_another_search_keeps_the_shorter_time_limit() -> None:
    before = _limits()
    with filter_conditions.search_timeout(100):
        with filter_conditions.search_timeout():
            inside = _limits()
        after = _limits()
        with suppress(InvalidFilter), filter_conditions.search_timeout(50):
            shorter = _limits()
            raise InvalidFilter("not a filter")
        again = _limits()
    assert inside == after == again == ["100ms", "force_custom_plan"]
    assert shorter == ["50ms", "force_custom_plan"]
    with transaction.atomic():
        with filter_conditions.search_timeout():
            assert _limits() == ["5s", "force_custom_plan"]
        assert _limits() == before == ["0", "auto"]


def test_a_filter_limited_to_other_dlqs_finds_nothing() -> None:
    bench = _declared()
    bench.bury('{"order_id": 7}')
    bench.capture()
    criteria = MessageFilter(states=(), fields=("order_id:7",))
    limits = ((), (bench.dlq.pk,), (bench.dlq.pk + 1,), None)
    assert [filtered_letters.count_letters(replace(criteria, dlqs=dlqs)) for dlqs in limits] == [0, 1, 0, 1]
