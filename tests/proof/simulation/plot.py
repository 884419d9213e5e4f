"""What a seed says of its world: queues and policy, what died, who is at work, and how much goes wrong."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from random import Random
from typing import Final, Literal

from reprocessing.conf import Conf
from tests.proof.simulation.outage import Kind, Outage, outage
from tests.proof.simulation.stage import Odds

Temper = Literal["well", "fails once", "fails twice", "poison"]
#: When worlds begin, in seconds since 1970; Postgres's own clock plays no part in them.
BEGIN: Final = 1_800_000_000.0
#: The share of worlds in which the first event of every key is poison.
POISON_HEADS: Final = 0.05
#: Of the worlds without poison, the share whose run gives up after a day; the others, after a minute.
PATIENT: Final = 0.5
MINUTE, DAY = 60.0, 86_400.0
AN_HOUR: Final = 3_600.0
VISIBILITY: Final = 2  # seconds that the source's consumer has for a message


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened in the world of the queue's users, and died.

    Attributes:
        key: whose events come in order.
        n: its place among those.
        temper: what its consumer does with it.
        at: seconds after the beginning at which it dies.
        copies: how many letters of it there are.
    """

    name: str
    key: str | None
    n: int
    temper: Temper
    at: float
    copies: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """One world.

    Attributes:
        dlq: fields of the dlq.
        target: fields of the source as a target.
        breaker: fields of its breaker.
        rule: fields of one rule; none: no rule.
        trouble: seconds for which things go wrong.
        outage: when the consumer fails what it gets.
        workers: replayers, capturers.
        meddles: a person releases, pauses, resumes and stops meanwhile.
        receives: how often the consumer gets a message before it is dead; of a FIFO queue once, since it goes on with
            the rest of a batch when one has failed.
    """

    seed: int
    fifo: bool
    keyed: bool
    events: tuple[Event, ...]
    conf: Conf
    odds: Odds
    dlq: dict[str, object]
    target: dict[str, object]
    breaker: dict[str, object]
    rule: dict[str, object] = field(default_factory=dict)
    trouble: float = 90.0
    outage: Outage = field(default_factory=Outage)
    workers: tuple[int, int] = (2, 1)
    meddles: bool = False
    receives: int = 1


def plot(seed: int, *, odds: Odds | None = None, kind: Kind | None = None, poison_heads: bool | None = None) -> Plot:
    """Return the world of a seed, always the same one.

    Args:
        seed: of all that the world is made of.
        odds: of faults, in the place of the seed's.
        kind: of outage, in the place of the seed's.
        poison_heads: whether the first event of every key fails for ever, in the place of the seed's throw.
    """
    dice, others = Random(seed), Random(f"counts {seed}")
    fifo, keyed = dice.random() < 0.3, dice.random() < 0.8
    proof, receives = dice.choice(("accepted", "absence")), 1 if fifo else others.choice((1, 1, 2, 3))
    trouble = dice.choice((10.0, 20.0, 40.0))
    begins = dice.uniform(0, trouble)
    world = Plot(
        seed=seed, fifo=fifo, keyed=keyed or fifo, trouble=trouble,
        conf=_conf(dice, others), dlq=_policy(dice, fifo=fifo, keyed=keyed),
        target=_target(dice, fifo=fifo, proof=proof, window=_window(receives)),
        breaker=_breaker(dice), rule=_rule(dice), events=tuple(_events(dice, trouble, keyed=keyed or fifo)),
        odds=odds or _odds(dice), workers=(dice.choice((1, 2, 2, 3)), dice.choice((1, 1, 2))),
        outage=Outage(((begins, begins + dice.uniform(5, 20)),)) if dice.random() < 0.3 else Outage(),
        meddles=dice.random() < 0.4, receives=receives,
    )  # fmt: skip
    return _with_outages(world, Random(f"outages {seed}"), kind, poison_heads=poison_heads)


def _with_outages(world: Plot, dice: Random, kind: Kind | None, *, poison_heads: bool | None) -> Plot:
    """Return the world with an outage of some kind, and in some worlds with poison at the head of every lane.

    These dice are thrown apart from the others: what a seed had before outages had kinds, it still has.
    """
    keys = {event.key for event in world.events}
    world = replace(world, outage=outage(dice, world.outage, trouble=world.trouble, keys=keys, kind=kind))
    world = _buried_at_once(world) if world.outage.ends > AN_HOUR else world
    thrown = dice.random() < POISON_HEADS
    world = _with_poison_heads(world) if (thrown if poison_heads is None else poison_heads) else world
    return _patient(world) if dice.random() < PATIENT else world


def _buried_at_once(world: Plot) -> Plot:
    """Return the world with a consumer that gets each message once: in an outage of days it pauses for minutes.

    One that gets a message again after a longer pause than its visibility is what `absence` cannot judge (ADR 0016).
    """
    return replace(world, receives=1, target={**world.target, "window": _window(1)})


def _window(receives: int) -> float:
    return (receives + 1.0) * VISIBILITY


def _with_poison_heads(world: Plot) -> Plot:
    heads = {event.key: event.name for event in reversed(world.events)}
    events = (replace(event, temper="poison") if heads[event.key] == event.name else event for event in world.events)
    return replace(world, events=tuple(events))


def _patient(world: Plot) -> Plot:
    """Return the world with a run that gives up after a day, unless an event fails for ever: then a day would pass."""
    has_poison = any(event.temper == "poison" for event in world.events)
    return world if has_poison else replace(world, dlq={**world.dlq, "give_up_after": DAY})


def _conf(dice: Random, others: Random) -> Conf:
    return Conf(
        lease=timedelta(seconds=8), slice=timedelta(seconds=dice.choice((2, 5))),
        lanes_per_task=dice.choice((1, 3, 50)), intent_size=dice.choice((1, 3, 10, 50)),
        max_unsettled=dice.choice((3, 1_000, 1_000, 1_000, 1_000)), long_poll=0,
        count_lag=timedelta(seconds=others.choice((0, 0, 1, 3, 6))),
        receive_visibility=dice.choice((6, 12)), held_copies_limit=dice.choice((3, 20_000)),
    )  # fmt: skip


def _policy(dice: Random, *, fifo: bool, keyed: bool) -> dict[str, object]:
    by_attributes = {"ordering_key": "attribute:key", "sequence": "attribute:n"} if keyed and not fifo else {}
    by_group = {"ordering_key": "system:MessageGroupId", "sequence": "system:SequenceNumber"} if fifo else {}
    return {
        "mode": "automatic", "new_key_delay": 0, "fifo": fifo, **by_attributes, **by_group,
        "delete_when": "captured" if fifo else dice.choice(("captured", "terminal", "terminal")),
        "max_attempts": dice.choice((1, 2, 3)),
        "backoff_base": dice.choice((0, 1, 2)), "backoff_cap": 5, "backoff_jitter": dice.choice(("full", "none")),
        "when_parked": dice.choice(("aside", "aside", "hold")), "stale": dice.choice(("park", "park", "deliver")),
        "waves": dice.random() < 0.3, "wave_success": 0.5, "give_up_after": MINUTE,
        "idempotency_key": dice.choice(("message-id", "attribute:event")),
    }  # fmt: skip


def _target(dice: Random, *, fifo: bool, proof: str, window: float) -> dict[str, object]:
    advance = "accepted" if proof == "accepted" else dice.choice(("settled", "settled", "accepted"))
    return {
        "fifo": fifo, "proof": proof, "advance": advance, "visibility": VISIBILITY, "window": window,
        "rate": dice.choice((None, None, 5.0, 20.0)),
    }  # fmt: skip


def _breaker(dice: Random) -> dict[str, object]:
    return {
        "threshold": dice.choice((2, 5)), "at_least": 4, "cooldown": 3.0, "cooldown_cap": 12.0,
        "canaries_to_close": dice.choice((1, 2)), "ramp_from": dice.choice((0.2, 1.0)), "ramp_every": 2.0,
    }  # fmt: skip


def _rule(dice: Random) -> dict[str, object]:
    if dice.random() < 0.6:
        return {}
    action = dice.choice(("delay", "quarantine", "discard", "hold"))
    return {"action": action, "delay": dice.uniform(1, 10) if action == "delay" else None}


def _odds(dice: Random) -> Odds:
    """Some worlds are wild, some have one kind of fault alone, in some nothing goes wrong."""
    wild = dice.choice((0.0, 0.3, 1.0, 1.0, 2.0))
    some = {
        "crash": 0.03, "freeze": 0.015, "cut": 0.015, "unheard": 0.05, "sqs": 0.2,
    }  # fmt: skip
    if dice.random() < 0.25:
        alone = dice.choice(sorted(some))
        some = {alone: 2 * some[alone]}
    return Odds(**{name: value * wild for name, value in some.items()})


def _events(dice: Random, trouble: float, *, keyed: bool) -> list[Event]:
    keys = dice.choice((1, 2, 4))
    late = dice.random() < 0.5
    numbers: dict[str, int] = {}
    events = []
    for number in range(dice.randrange(3, 11)):
        key = f"k{dice.randrange(keys)}" if keyed else None
        numbers[key or ""] = numbers.get(key or "", 0) + 1
        tempers: tuple[Temper, ...] = ("well", "well", "well", "well", "fails once", "fails twice", "poison")
        events.append(
            Event(
                name=f"e{number}", key=key, n=numbers[key or ""], temper=dice.choice(tempers),
                at=dice.uniform(0, trouble / 2) if late and dice.random() < 0.5 else 0.0,
                copies=2 if dice.random() < 0.1 else 1,
            )
        )  # fmt: skip
    return events
