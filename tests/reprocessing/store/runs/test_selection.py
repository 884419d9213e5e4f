"""What a run selects are prefixes of lanes: a letter goes only when those before it go, too, or are under way."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import timedelta

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reprocessing.domain.runs.selection import ALL_LETTERS, Selection
from reprocessing.models import Letter, Run, Source
from reprocessing.store.runs import selection
from reprocessing.store.runs.selection import SelectedCount
from tests.reprocessing.store.stock import NOW, Stock

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def stock() -> Stock:
    stock = Stock()
    Letter.objects.update(state="delivered", finished_at=NOW)
    return stock


def capture(stock: Stock, *names: str, **fields: object) -> None:
    """Captured letters named key and sequence: a1, b3; later ones died later."""
    for name in names:
        stock.another_letter(**{
            "state": "captured", "lane": None, "run": None, "message_id": name, "key_hash": name[0].encode(),
            "ordering_key": name[0], "sequence": name[1:], "single": False,
            "first_sent_at": NOW + timedelta(minutes=Letter.objects.count()), **fields,
        })  # fmt: skip


def plan(stock: Stock) -> Run:
    return Run.objects.create(name=uuid.uuid4().hex, dlq=stock.dlq)


def select(stock: Stock, wish: Selection = ALL_LETTERS, run: Run | None = None) -> tuple[SelectedCount, list[str]]:
    run = run or plan(stock)
    with transaction.atomic():
        found = selection.select_letters(stock.dlq.pk, run.pk, wish)
    return found, sorted(Letter.objects.filter(run=run, state="captured").values_list("message_id", flat=True))


def behind(stock: Stock, wish: Selection) -> list[str]:
    return selection.letters_behind(stock.dlq.pk, plan(stock).pk, wish, most=10)


def test_all_are_selected_and_stay_captured(stock: Stock) -> None:
    capture(stock, "a1", "a2", "b1")
    assert select(stock) == (SelectedCount(3, 0), ["a1", "a2", "b1"])
    assert set(Letter.objects.exclude(message_id=stock.letter.message_id).values_list("state", flat=True)) == {
        "captured"
    }


@pytest.mark.soak
@pytest.mark.alone
@pytest.mark.long
def test_many_letters_without_statistics_are_selected_quickly(stock: Stock) -> None:
    """Each by its id: read anew for every one of them, eight thousand take twenty seconds and more."""
    capture(stock, "a0")
    own = {"message_id": "g::text", "sequence": "g::text", "public_id": "gen_random_uuid()"}
    columns = [str(field.column) for field in Letter._meta.concrete_fields if field.column != "id"]
    values = ", ".join(own.get(column, f"l.{column}") for column in columns)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO redrive_letter ({', '.join(columns)}) "
            f"SELECT {values} FROM redrive_letter l, generate_series(1, 7999) g WHERE l.message_id = 'a0'"
        )
    run = plan(stock)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = '12s'")
        assert selection.select_letters(stock.dlq.pk, run.pk, ALL_LETTERS) == SelectedCount(8_000, 0)


def test_letters_behind_others_that_are_not_asked_for_are_reported_and_not_selected(stock: Stock) -> None:
    capture(stock, "a1", "a2", "b1", "b2", "b3")
    wish = Selection(message_ids=("a1", "b2", "b3"))
    assert behind(stock, wish) == ["b2", "b3"]
    assert select(stock, wish) == (SelectedCount(1, 2), ["a1"])


def test_a_limit_cuts_lanes_in_the_order_of_their_oldest_letters(stock: Stock) -> None:
    capture(stock, "b2", "a1", "b1", "a2")
    assert select(stock, Selection(limit=3)) == (SelectedCount(3, 0), ["a1", "b1", "b2"])


def test_a_key_selects_its_whole_lane(stock: Stock) -> None:
    capture(stock, "a1", "b1", "a2")
    assert select(stock, Selection(key="a")) == (SelectedCount(2, 0), ["a1", "a2"])


def test_a_time_range_selects_only_prefixes_of_lanes(stock: Stock) -> None:
    capture(stock, "a1", "a2", "a3")
    died = dict(Letter.objects.values_list("message_id", "first_sent_at"))
    assert select(stock, Selection(sent_after=died["a2"])) == (SelectedCount(0, 2), [])
    assert select(stock, Selection(sent_before=died["a3"])) == (SelectedCount(2, 0), ["a1", "a2"])


def test_a_source_is_selected_by_its_name_or_arn(stock: Stock) -> None:
    other = Source.objects.create(dlq=stock.dlq, arn="arn:aws:sqs:us-east-1:0:bills", target=stock.target)
    capture(stock, "a1")
    capture(stock, "b1", source=other)
    assert select(stock, Selection(source="ills")) == (SelectedCount(0, 0), [])
    assert behind(stock, Selection(source="bills")) == []
    assert select(stock, Selection(source="bills")) == (SelectedCount(1, 0), ["b1"])
    capture(stock, "c1", source=other)
    assert select(stock, Selection(source=other.arn)) == (SelectedCount(1, 0), ["c1"])


def test_equal_keys_of_two_sources_are_two_lanes(stock: Stock) -> None:
    other = Source.objects.create(dlq=stock.dlq, arn="arn:aws:sqs:us-east-1:0:bills", target=stock.target)
    capture(stock, "a1", "b1")
    capture(stock, "a2", source=other)
    assert behind(stock, Selection(message_ids=("a2",))) == []
    assert select(stock, Selection(limit=2)) == (SelectedCount(2, 0), ["a1", "b1"])
    capture(stock, "c1")
    capture(stock, "c2", source=other)
    c2 = Letter.objects.get(message_id="c2").pk
    with transaction.atomic():
        assert selection.lock_free_letters(stock.dlq.pk, plan(stock).pk, [c2]) == [c2]
    assert select(stock, Selection(message_ids=("a2",))) == (SelectedCount(1, 0), ["a2"])


@pytest.mark.parametrize(("a1_is_in", "locked"), [("no run", []), ("this run", ["a2"]), ("another run", [])])
def test_free_letters_are_locked_only_with_every_letter_before_them(
    stock: Stock, a1_is_in: str, locked: list[str]
) -> None:
    run, another = plan(stock), plan(stock)
    capture(stock, "a1", run={"no run": None, "this run": run, "another run": another}[a1_is_in])
    capture(stock, "a2", "a3", "b1")
    ids = dict(Letter.objects.values_list("message_id", "id"))
    with transaction.atomic():
        found = selection.lock_free_letters(stock.dlq.pk, run.pk, [ids["a2"], ids["b1"]])
    assert sorted(Letter.objects.filter(pk__in=found).values_list("message_id", flat=True)) == [*locked, "b1"]


def test_letters_under_way_are_ahead_and_letters_of_another_plan_block(stock: Stock) -> None:
    capture(stock, "a2", "b2", "c1")
    stock.another_letter(key_hash=b"a", sequence="1", state="waiting")
    other = plan(stock)
    capture(stock, "b1", run=other)
    assert behind(stock, ALL_LETTERS) == ["b2"]
    assert select(stock) == (SelectedCount(2, 1), ["a2", "c1"])


def test_letters_without_a_place_block_no_letter(stock: Stock) -> None:
    capture(stock, "a1", "b1", key_hash=None, ordering_key=None, sequence=None, blocked_reason="no_ordering_key")
    assert select(stock, Selection(message_ids=("b1",))) == (SelectedCount(1, 0), ["b1"])
    capture(stock, "c1", planned=False)
    assert select(stock) == (SelectedCount(1, 0), ["a1"])


def naive(letters: Sequence[tuple[str, int]], wanted: set[int]) -> set[int]:
    """Of each lane the letters before the first one that is not asked for."""
    chosen: set[int] = set()
    for key in {key for key, _ in letters}:
        for number in sorted(number for lane, number in letters if lane == key):
            if number not in wanted:
                break
            chosen.add(number)
    return chosen


@pytest.mark.soak
@given(st.lists(st.sampled_from("abc"), max_size=9), st.sets(st.integers(0, 8)))
@settings(
    max_examples=25, deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
def test_a_selection_equals_a_naive_one(stock: Stock, keys: list[str], wanted: set[int]) -> None:
    Letter.objects.filter(state="captured").update(state="discarded", finished_at=NOW)
    batch = uuid.uuid4().hex
    letters = [(key, number) for number, key in enumerate(keys)]
    for key, number in letters:
        capture(stock, f"{key}{number}", message_id=f"{batch}-{number}")
    ids = {f"{batch}-{number}": number for _, number in letters}
    found, names = select(stock, Selection(message_ids=("nobody's", *(f"{batch}-{number}" for number in wanted))))
    expected = naive(letters, wanted)
    assert {ids[name] for name in names} == expected
    assert found == SelectedCount(len(expected), len(wanted & set(ids.values())) - len(expected))
