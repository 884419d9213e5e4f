"""Promises that hold for every kind of target, through the whole pipeline to the wire and back."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from reprocessing.models import Attempt, Claim, Lane, Letter, Target
from reprocessing.pipeline.replay import lease_keeper
from reprocessing.store.ordering import lanes
from tests.reprocessing.pipeline.bench import Clock, Workbench
from tests.reprocessing.pipeline.targets.gateway import ASSUMED, WAIT, Does
from tests.reprocessing.pipeline.targets.kinds import KINDS, Kind

pytestmark = pytest.mark.django_db(transaction=True)

#: Kinds that carry the redrive id: a function gets only the payload, a bus only the event.
MARKED = [name for name in KINDS if name not in ("lambda", "bus")]
WAITED_FOR = ["http", "lambda"]  #: kinds that can say how long to wait
WAYS = ["sqs", "sqs-fifo", "http"]  #: in batches, in groups, one by one
SERVICES = ["sqs", "http", "lambda", "topic", "bus"]  #: one kind of each service
UNDER_ROLES = [name for name in SERVICES if name != "http"]


def bury(kind: Kind, bench: Workbench, *words: str, key: str | None = None) -> None:
    """Bury letters; without a key, each has a lane of its own."""
    for n, word in enumerate(words):
        bench.bury(kind.letter(word), key=key or f"of-{word}", n=str(n))


def ready(kind: Kind, *words: str, key: str | None = None, **fields: object) -> Workbench:
    bench = kind.bench(**fields)
    bury(kind, bench, *words, key=key)
    bench.ready()
    return bench


def with_idempotency_key(kind: Kind) -> Workbench:
    bench = kind.bench(idempotency_key="attribute:idem")
    bench.enqueue(kind.letter("apple"), key="k", n="1", idem="order-1")
    return bench


def found(bench: Workbench, word: str) -> Letter:
    [letter] = [one for one in Letter.objects.filter(dlq=bench.dlq) if word in bytes(one.payload.body).decode()]
    return letter


def states(bench: Workbench, *words: str) -> list[str]:
    return [found(bench, word).state for word in words]


def due(bench: Workbench, word: str) -> timedelta:
    moment: datetime | None = Lane.objects.get(letters=found(bench, word)).due_at
    assert moment
    return moment - lanes.database_now()


def attempts(bench: Workbench, word: str) -> list[tuple[int, str | None, int, bool | None]]:
    """Return number, outcome, epoch, and whether the breaker counts it as a failure, of each attempt."""
    of = Attempt.objects.filter(letter=found(bench, word)).order_by("id")
    return list(of.values_list("no", "outcome", "epoch", "counts_as_failure"))


def test_an_accepted_letter_is_delivered_and_its_copy_deleted_from_the_dlq(kind: Kind) -> None:
    bench = ready(kind, "apple", "pear")
    assert bench.replay().taken == 2
    assert states(bench, "apple", "pear") == ["delivered"] * 2
    assert sorted(message.text for message in kind.heard()) == sorted(
        kind.parcel(kind.letter(one)) for one in ("apple", "pear")
    )
    assert attempts(bench, "apple") == [(1, "accepted", 0, False)]
    assert bench.left() == 0


def test_a_failed_letter_backs_off_and_is_parked_after_max_attempts(kind: Kind, clock: Clock) -> None:
    bench = ready(kind, "apple", "pear", max_attempts=2)
    kind.world.gateway.does["apple"] = Does.FAILS
    bench.replay()
    assert states(bench, "apple", "pear") == ["waiting", "delivered"]
    assert attempts(bench, "apple") == [(1, "refused", 0, True)]
    assert timedelta(seconds=50) < due(bench, "apple") <= timedelta(seconds=60)
    bench.replay()
    assert found(bench, "apple").attempts == 1
    clock.advance(61)
    bench.replay()
    assert attempts(bench, "apple") == [(1, "refused", 0, True), (2, "refused", 1, True)]
    assert (found(bench, "apple").state, found(bench, "apple").reason) == ("parked", "attempts_spent")
    assert [message.text for message in kind.heard()] == [kind.parcel(kind.letter("pear"))]


def test_a_letter_that_the_target_can_never_take_is_parked_at_once_and_the_others_are_delivered(kind: Kind) -> None:
    bench = ready(kind, "apple", "pear", "plum")
    kind.world.gateway.does["pear"] = Does.POISONS
    bench.replay()
    assert states(bench, "apple", "pear", "plum") == ["delivered", "parked", "delivered"]
    reasons = {"unsendable"} if bench.target.kind == "lambda" else {"refused", "unsendable"}
    assert found(bench, "pear").reason in reasons
    assert attempts(bench, "pear") == [(1, "refused", 0, None)]
    assert len(kind.heard()) == 2


@pytest.mark.parametrize("kind", SERVICES, indirect=True)
def test_a_target_that_cannot_be_reached_uses_no_attempt_and_counts_against_the_target(kind: Kind) -> None:
    bench = ready(kind, "apple")
    with kind.away():
        bench.replay(0.5)
    letter = found(bench, "apple")
    assert (letter.state, letter.attempts) == ("waiting", 0)
    assert letter.not_sent >= 1
    assert {attempt[1:] for attempt in attempts(bench, "apple")} == {("not_sent", 0, True)}
    assert kind.sent() == []


def test_a_letter_whose_lease_is_almost_over_is_not_sent_and_counts_against_nobody(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = ready(kind, "apple")
    monkeypatch.setattr(lease_keeper, "SEND_MARGIN", 1e9)  # the lease has too little left for any request
    bench.replay(0.2)
    assert kind.sent() == []
    assert found(bench, "apple").attempts == 0
    assert {attempt[1:] for attempt in attempts(bench, "apple")} == {("not_sent", 0, None)}


@pytest.mark.parametrize("kind", UNDER_ROLES, indirect=True)
def test_a_target_of_another_account_is_reached_under_its_role(kind: Kind) -> None:
    bench = kind.bench()
    role = f"arn:aws:iam::111122223333:role/{bench.name}"
    Target.objects.filter(pk=bench.target.pk).update(role_arn=role)
    bury(kind, bench, "apple")
    bench.ready()
    bench.replay()
    assert states(bench, "apple") == ["delivered"]
    assert kind.world.gateway.roles == [role]
    [asked] = kind.world.gateway.taken
    assert f"Credential={ASSUMED}/" in asked.headers["authorization"]


def test_after_an_answer_that_is_lost_the_claim_is_held_and_the_next_attempt_is_the_same_letter(
    kind: Kind, clock: Clock
) -> None:
    bench = with_idempotency_key(kind)
    kind.world.gateway.does["apple"] = Does.LOSES
    bench.replay()
    assert states(bench, "apple") == ["waiting"]
    assert attempts(bench, "apple") == [(1, "unknown", 0, True)]
    assert Claim.objects.get(target=bench.target).state == "held"
    kind.world.gateway.does.clear()
    clock.advance(61)
    bench.replay()
    assert attempts(bench, "apple") == [(1, "unknown", 0, True), (2, "accepted", 0, False)]
    assert Claim.objects.get(target=bench.target).state == "delivered"
    # A FIFO queue knows the second by its deduplication id.
    assert len(kind.heard()) == (1 if kind.fifo else 2)


@pytest.mark.parametrize("kind", MARKED, indirect=True)
def test_the_key_and_the_redrive_id_are_the_same_on_every_attempt_and_its_number_is_told(
    kind: Kind, clock: Clock
) -> None:
    bench = with_idempotency_key(kind)
    for does in (Does.FAILS, Does.LOSES, Does.TAKES):
        kind.world.gateway.does["apple"] = does
        bench.replay()
        clock.advance(600)
    public_id = found(bench, "apple").public_id
    sent = [one for request in kind.sent() for one in request]
    assert [message.key for message in sent] == ["order-1"] * 3
    assert [message.mark for message in sent] == [f"{public_id}:{no}" for no in (1, 2, 3)]


@pytest.mark.parametrize("kind", ["sqs-fifo"], indirect=True)
def test_a_fifo_queue_is_told_another_letter_only_when_the_first_is_known_to_have_failed(
    kind: Kind, clock: Clock
) -> None:
    bench = ready(kind, "apple")
    for does in (Does.FAILS, Does.LOSES, Does.TAKES):
        kind.world.gateway.does["apple"] = does
        bench.replay()
        clock.advance(600)
    first, second, third = [one.deduplication for request in kind.sent() for one in request]
    assert first != second
    assert second == third


def test_letters_of_a_key_go_in_their_order_and_one_at_a_time(kind: Kind) -> None:
    bench = kind.bench()
    words = {f"key-{key}": [f"key-{key} no-{no}" for no in range(3)] for key in range(2)}
    for key, some in words.items():
        bury(kind, bench, *some, key=key)
    bench.ready()
    kind.world.gateway.slowness = 0.03
    assert bench.replay().taken == 6
    requests = [[one.text for one in request] for request in kind.sent()]
    for key, some in words.items():
        of_key = [[text for text in request if key in text] for request in requests]
        assert max(len(one) for one in of_key) == 1
        order = [next(word for word in some if word in text) for one in of_key for text in one]
        assert order == some
    assert kind.world.gateway.overlaps == []


@pytest.mark.parametrize("kind", WAYS, indirect=True)
def test_no_letter_overtakes_one_of_its_key_that_is_retried(kind: Kind, clock: Clock) -> None:
    bench = ready(kind, "apple", "pear", key="k")
    kind.world.gateway.does["apple"] = Does.FAILS
    bench.replay()
    assert states(bench, "apple", "pear") == ["waiting", "waiting"]
    assert sum(len(request) for request in kind.sent()) == 1
    kind.world.gateway.does.clear()
    clock.advance(61)
    bench.replay()
    assert [message.text for message in kind.heard()] == [kind.parcel(kind.letter(one)) for one in ("apple", "pear")]


@pytest.mark.parametrize("kind", WAITED_FOR, indirect=True)
def test_a_target_that_asks_to_wait_is_waited_for_and_uses_no_attempt(kind: Kind, clock: Clock) -> None:
    bench = ready(kind, "apple")
    kind.world.gateway.does["apple"] = Does.ASKS_TO_WAIT
    bench.replay()
    letter = found(bench, "apple")
    assert (letter.state, letter.attempts, letter.not_sent) == ("waiting", 0, 1)
    assert attempts(bench, "apple") == [(1, "not_sent", 0, None)]
    assert timedelta(seconds=WAIT - 10) < due(bench, "apple") <= timedelta(seconds=WAIT)
    kind.world.gateway.does.clear()
    clock.advance(WAIT - 10)
    bench.replay()
    assert len(kind.sent()) == 1
    clock.advance(11)
    bench.replay()
    assert states(bench, "apple") == ["delivered"]
