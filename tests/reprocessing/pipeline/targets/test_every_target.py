"""What holds for every kind of target, from the dlq through the whole pipeline to the wire and back."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from reprocessing.models import Attempt, Claim, DeadLetter, Lane, Target
from reprocessing.pipeline.replay import lease_keeper
from reprocessing.store.ordering import lanes
from tests.reprocessing.pipeline.bench import Clock, Workbench
from tests.reprocessing.pipeline.targets.gateway import ASSUMED, WAIT, Does
from tests.reprocessing.pipeline.targets.kinds import KINDS, Kind

pytestmark = pytest.mark.django_db(transaction=True)

#: A function is given a payload and a bus an event; neither has a place for anything of ours.
MARKED = [one for one in KINDS if one not in ("lambda", "bus")]
#: Only they say how long they want to be waited for; what AWS's queues, topics and buses turn away is refused.
WAITED_FOR = ["http", "lambda"]
#: One of each way to a target, for what is decided before the kind matters: in batches, in groups, one by one.
WAYS = ["sqs", "sqs-fifo", "http"]
#: One of each service: all queues are reached alike. Endpoints know no roles of AWS's.
SERVICES = ["sqs", "http", "lambda", "topic", "bus"]
UNDER_ROLES = [one for one in SERVICES if one != "http"]


def bury(kind: Kind, bench: Workbench, *words: str, key: str | None = None) -> None:
    """Letters, each in a lane of its own where no key is given."""
    for n, word in enumerate(words):
        bench.bury(kind.letter(word), key=key or f"of-{word}", n=str(n))


def found(bench: Workbench, word: str) -> DeadLetter:
    [one] = [one for one in DeadLetter.objects.filter(dlq=bench.dlq) if word in bytes(one.payload.body).decode()]
    return one


def states(bench: Workbench, *words: str) -> list[str]:
    return [found(bench, word).state for word in words]


def due(bench: Workbench, word: str) -> timedelta:
    """How long its lane rests."""
    moment: datetime | None = Lane.objects.get(letters=found(bench, word)).due_at
    assert moment
    return moment - lanes.clock()


def attempts(bench: Workbench, word: str) -> list[tuple[int, str | None, int, bool | None]]:
    """Number, outcome, epoch, and whether it speaks against the target."""
    of = Attempt.objects.filter(letter=found(bench, word)).order_by("id")
    return list(of.values_list("no", "outcome", "epoch", "ill"))


def test_what_is_taken_is_delivered_and_its_copy_deleted_from_the_dlq(kind: Kind) -> None:
    bench = kind.bench()
    bury(kind, bench, "apple", "pear")
    bench.ready()
    assert bench.replay().taken == 2
    assert states(bench, "apple", "pear") == ["delivered"] * 2
    assert sorted(one.text for one in kind.heard()) == sorted(
        kind.parcel(kind.letter(one)) for one in ("apple", "pear")
    )
    assert attempts(bench, "apple") == [(1, "accepted", 0, False)]
    assert bench.left() == 0


@pytest.mark.parametrize("kind", WAYS, indirect=True)
def test_with_proof_acknowledged_it_awaits_its_consumer_s_word(kind: Kind) -> None:
    bench = kind.bench()
    Target.objects.filter(pk=bench.target.pk).update(proof="acknowledged", advance="settled", window=60)
    bury(kind, bench, "apple")
    bench.ready()
    assert bench.replay().taken == 1
    assert states(bench, "apple") == ["awaiting"]
    assert attempts(bench, "apple") == [(1, None, 0, None)]
    assert bench.left() == (0 if kind.fifo else 1)  # of a FIFO dlq, what is captured is deleted


def test_a_refusal_that_is_not_the_letter_s_fault_counts_and_rests_until_it_is_parked(kind: Kind, clock: Clock) -> None:
    bench = kind.bench(max_attempts=2)
    bury(kind, bench, "apple", "pear")
    bench.ready()
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
    assert [one.text for one in kind.heard()] == [kind.parcel(kind.letter("pear"))]


def test_what_is_refused_for_what_it_is_is_parked_at_once_and_its_mates_go_on(kind: Kind) -> None:
    bench = kind.bench()
    bury(kind, bench, "apple", "pear", "plum")
    bench.ready()
    kind.world.gateway.does["pear"] = Does.POISONS
    bench.replay()
    assert states(bench, "apple", "pear", "plum") == ["delivered", "parked", "delivered"]
    assert found(bench, "pear").reason == (
        "unsendable" if bench.target.kind == "lambda" else found(bench, "pear").reason
    )
    assert found(bench, "pear").reason in ("refused", "unsendable")
    assert attempts(bench, "pear") == [(1, "refused", 0, None)]
    assert len(kind.heard()) == 2


@pytest.mark.parametrize("kind", SERVICES, indirect=True)
def test_a_target_that_cannot_be_reached_counts_nothing_and_that_speaks_against_it(kind: Kind) -> None:
    bench = kind.bench()
    bury(kind, bench, "apple")
    bench.ready()
    with kind.away():
        bench.replay(0.5)
    letter = found(bench, "apple")
    assert (letter.state, letter.attempts) == ("waiting", 0)
    assert letter.not_sent >= 1
    assert {one[1:] for one in attempts(bench, "apple")} == {("not_sent", 0, True)}
    assert kind.sent() == []


def test_what_may_not_start_any_more_is_not_sent_and_speaks_against_nobody(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = kind.bench()
    bury(kind, bench, "apple")
    bench.ready()
    monkeypatch.setattr(lease_keeper, "SEND_MARGIN", 1e9)  # the lease has too little left for any request
    bench.replay(0.2)
    assert kind.sent() == []
    assert found(bench, "apple").attempts == 0
    assert {one[1:] for one in attempts(bench, "apple")} == {("not_sent", 0, None)}


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
    bench = kind.bench(idempotency_key="attribute:idem")
    bench.bury(kind.letter("apple"), key="k", n="1", idem="order-1")
    bench.ready()
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
    bench = kind.bench(idempotency_key="attribute:idem")
    bench.bury(kind.letter("apple"), key="k", n="1", idem="order-1")
    bench.ready()
    for does in (Does.FAILS, Does.LOSES, Does.TAKES):
        kind.world.gateway.does["apple"] = does
        bench.replay()
        clock.advance(600)
    public_id = found(bench, "apple").public_id
    sent = [one for request in kind.sent() for one in request]
    assert [one.key for one in sent] == ["order-1"] * 3
    assert [one.mark for one in sent] == [f"{public_id}:{no}" for no in (1, 2, 3)]


@pytest.mark.parametrize("kind", ["sqs-fifo"], indirect=True)
def test_a_fifo_queue_is_told_another_letter_only_when_the_first_is_known_to_have_failed(
    kind: Kind, clock: Clock
) -> None:
    bench = kind.bench()
    bury(kind, bench, "apple")
    bench.ready()
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
def test_none_overtakes_a_letter_of_its_key_that_is_to_be_tried_again(kind: Kind, clock: Clock) -> None:
    bench = kind.bench()
    bury(kind, bench, "apple", "pear", key="k")
    bench.ready()
    kind.world.gateway.does["apple"] = Does.FAILS
    bench.replay()
    assert states(bench, "apple", "pear") == ["waiting", "waiting"]
    assert sum(len(request) for request in kind.sent()) == 1
    kind.world.gateway.does.clear()
    clock.advance(61)
    bench.replay()
    assert [one.text for one in kind.heard()] == [kind.parcel(kind.letter(one)) for one in ("apple", "pear")]


@pytest.mark.parametrize("kind", WAITED_FOR, indirect=True)
def test_one_that_asks_to_be_waited_for_is_waited_for_and_nothing_is_counted(kind: Kind, clock: Clock) -> None:
    bench = kind.bench()
    bury(kind, bench, "apple")
    bench.ready()
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
