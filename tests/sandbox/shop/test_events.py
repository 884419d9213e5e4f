from __future__ import annotations

import json
from collections import Counter, defaultdict
from random import Random

import pytest

from redrive_service.sandbox.shop.events import MOST_OF_AN_ACCOUNT, OF_SPOILT, SPOILT, ShopEvent, make_events


def twice_published(events: list[ShopEvent]) -> int:
    return sum(number - 1 for number in Counter(event.event_id for event in events).values())


def test_two_thousand_letters_are_of_many_accounts_with_poison_and_duplicates_among_them() -> None:
    events = make_events(2000, Random(1))
    usual = [event for event in events if event.account != SPOILT]
    assert (len(events), len({event.account for event in usual})) == (2000, 663)
    assert sum(event.poison for event in usual) == 10
    assert twice_published(events) == 10
    assert max(Counter(event.account for event in usual).values()) <= MOST_OF_AN_ACCOUNT


@pytest.mark.parametrize(("letters", "spoilt"), [(299, 0), (300, OF_SPOILT), (2000, OF_SPOILT)])
def test_where_there_are_letters_enough_one_account_is_poison_alone(letters: int, spoilt: int) -> None:
    events = [event for event in make_events(letters, Random(letters)) if event.account == SPOILT]
    assert [event.poison for event in events] == [True] * spoilt
    assert twice_published(events) == 0


@pytest.mark.parametrize("letters", [0, 1, 9, 10, 11, 57, 2399])
def test_there_are_exactly_as_many_as_asked_for(letters: int) -> None:
    assert len(make_events(letters, Random(letters))) == letters


@pytest.mark.parametrize("seed", range(50))
def test_from_ten_letters_on_there_is_poison_and_a_duplicate(seed: int) -> None:
    events = make_events(10, Random(seed))
    assert sum(event.poison for event in events) == 1
    assert twice_published(events) == 1


@pytest.mark.parametrize("letters", [10, 11, 57, 400])
def test_other_messages_of_its_account_follow_a_poison_message(letters: int) -> None:
    events = [event for event in make_events(letters, Random(letters)) if event.account != SPOILT]
    poison = [event for event in events if event.poison]
    assert [event.sequence for event in poison] == [1] * max(1, letters // 200)
    numbers = Counter(event.account for event in events)
    assert all(numbers[event.account] > 1 for event in poison)


def test_an_accounts_events_are_published_in_the_order_of_their_numbers() -> None:
    numbers: dict[str, list[int]] = defaultdict(list)
    seen: set[str] = set()
    for event in make_events(500, Random(2)):
        if event.event_id not in seen:
            seen.add(event.event_id)
            numbers[event.account].append(event.sequence)
    assert all(found == list(range(1, len(found) + 1)) for found in numbers.values())


def test_two_nights_share_no_event_and_the_same_dice_tell_the_same_night() -> None:
    one, again, other = (make_events(20, Random(seed)) for seed in (1, 1, 2))
    assert one == again
    assert {event.event_id for event in one}.isdisjoint(event.event_id for event in other)


def test_an_event_is_json_with_its_attributes_beside_it() -> None:
    event = make_events(1, Random(3))[0]
    told = json.loads(event.body())
    assert (told["id"], told["account"], told["sequence"]) == (event.event_id, event.account, 1)
    assert event.attributes() == {
        "event_id": event.event_id,
        "account": event.account,
        "sequence": "1",
        "event_type": event.event_type,
    }
