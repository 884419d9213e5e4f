from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from reprocessing.models import Lane, Letter, Source
from reprocessing.store.ordering import key_messages
from reprocessing.store.ordering.key_messages import SHOWN, messages_around
from reprocessing.store.ordering.lanes import database_now
from tests.reprocessing.admin.parking_lot.parked_messages import dlq
from tests.reprocessing.store.explained import explained

pytestmark = pytest.mark.django_db

HASH = b"hash of the key"
ENDED = ("delivered", "parked", "discarded")


def letters(source: Source, states: list[str], *, key_hash: bytes = HASH, first: int = 0) -> list[Letter]:
    """Letters of one key in this order; a captured one is in no lane."""
    lane, _ = Lane.objects.get_or_create(dlq=source.dlq, source=source, key_hash=key_hash, defaults={"key": "key-7"})
    now = database_now()
    made = [
        Letter(
            dlq=source.dlq, source=source, target=source.target, lane=None if state == "captured" else lane,
            message_id=f"{key_hash.hex()}-{first + n}", state=state, planned=True, single=False, ordering_key="key-7",
            key_hash=key_hash, sequence=f"{first + n:09}", reason="refused" if state == "parked" else "",
            body_hash=b"", size=2, first_sent_at=now, finished_at=now if state in ENDED else None,
            frees_lane=False,
        )
        for n, state in enumerate(states)
    ]  # fmt: skip
    return Letter.objects.bulk_create(made)


def around(letter: Letter) -> tuple[list[int], list[int], bool, bool]:
    found = messages_around(letter)
    assert found
    return [one.id for one in found.before], [one.id for one in found.after], found.more_before, found.more_after


def test_messages_of_all_states_are_in_the_order_of_the_key() -> None:
    made = letters(dlq(), ["delivered", "discarded", "parked", "sending", "waiting", "captured"])
    ids = [letter.pk for letter in made]
    assert [around(letter) for letter in made] == [
        (ids[:at], ids[at + 1 :], False, False) for at in range(len(made))
    ]  # fmt: skip


def test_a_sent_message_that_frees_its_lane_is_there() -> None:
    first, second = letters(dlq(), ["awaiting", "waiting"])
    Letter.objects.filter(pk=first.pk).update(frees_lane=True)
    assert around(second)[0] == [first.pk]


def test_a_message_that_ended_before_it_was_enlisted_is_there() -> None:
    made = letters(dlq(), ["parked", "delivered", "discarded", "waiting"])
    Letter.objects.filter(pk__in=[made[0].pk, made[2].pk]).update(lane=None)
    ids = [letter.pk for letter in made]
    assert around(made[3]) == (ids[:3], [], False, False)
    assert around(Letter.objects.get(pk=ids[2])) == (ids[:2], ids[3:], False, False)


def test_ten_on_each_side_are_shown_and_the_nearest() -> None:
    made = letters(dlq(), ["delivered"] * 15 + ["parked"] + ["waiting"] * 15)
    ids = [letter.pk for letter in made]
    assert around(made[15]) == (ids[15 - SHOWN : 15], ids[16 : 16 + SHOWN], True, True)


def test_messages_of_other_keys_and_of_other_dlqs_with_the_same_key_are_not_there() -> None:
    source, other = dlq(), dlq("other-dlq")
    mine, *_ = letters(source, ["parked"])
    letters(source, ["delivered"], key_hash=b"another", first=1)
    letters(other, ["delivered"], first=2)
    assert around(mine) == ([], [], False, False)


@pytest.mark.parametrize("fields", [{"single": True}, {"key_hash": None}, {"sequence": None}])
def test_a_message_without_a_key_or_a_place_has_none(fields: dict[str, Any]) -> None:
    (letter,) = letters(dlq(), ["captured"])
    for name, value in fields.items():
        setattr(letter, name, value)
    assert messages_around(letter) is None


def test_the_last_delivered_message_of_the_key_is_found() -> None:
    made = letters(dlq(), ["delivered", "delivered", "discarded", "parked"])
    assert [key_messages.last_delivered(letter) for letter in (made[3], made[1])] == [made[1].pk, made[0].pk]


def test_delivered_messages_after_a_message_of_the_key_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    made = letters(dlq(), ["delivered", "parked", "delivered", "discarded", "delivered", "waiting"])
    letters(made[0].source, ["delivered"], key_hash=b"another", first=7)  # type: ignore[arg-type]  # it has a source
    counted = [key_messages.delivered_later(letter) for letter in (made[0], made[1], made[4])]
    assert [(found.delivered, found.is_cut) for found in counted] == [(2, False), (2, False), (0, False)]
    monkeypatch.setattr(key_messages, "COUNTED_AT_MOST", 2)
    assert key_messages.delivered_later(made[1]) == key_messages.LaterDelivered(2, is_cut=True)
    made[1].single = True
    assert key_messages.delivered_later(made[1]).delivered == 0


#: Fills a key: so many letters in a state, from a sequence on.
_MANY = """
INSERT INTO redrive_letter (public_id, dlq_id, source_id, target_id, lane_id, message_id, state, planned, single,
       key_hash, sequence, body_hash, size, first_sent_at, finished_at)
SELECT gen_random_uuid(), l.dlq_id, l.source_id, l.target_id, CASE WHEN %(state)s <> 'captured' THEN l.lane_id END,
       %(state)s || n, %(state)s, true, false, l.key_hash, to_char(n, 'FM000000000'), '', 2, now(),
       CASE WHEN %(state)s = 'delivered' THEN now() END
  FROM redrive_letter l, generate_series(%(first)s::int, %(last)s::int) n WHERE l.id = %(like)s
"""


@pytest.mark.soak
def test_few_rows_of_a_long_key_are_read() -> None:
    (letter,) = letters(dlq(), ["parked"], first=5_000)
    with connection.cursor() as cursor:
        for state, first, last in (("delivered", 1, 4_999), ("waiting", 5_001, 6_000), ("captured", 6_001, 7_000)):
            cursor.execute(_MANY, {"state": state, "first": first, "last": last, "like": letter.pk})
        cursor.execute("UPDATE redrive_letter SET lane_id = NULL WHERE state = 'delivered' AND sequence < '000000200'")
        cursor.execute("ANALYZE redrive_letter")
    with explained() as found:
        before, after, *more = around(letter)
        key_messages.last_delivered(letter)
        key_messages.delivered_later(letter)
    assert (len(before), len(after), more) == (SHOWN, SHOWN, [True, True])
    assert [(one.scanned, one.buffers < 100) for one in found] == [(frozenset(), True)] * 4
