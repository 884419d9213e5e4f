"""One cycle: payloads die among mates, one capture, one replay turn; and what has to hold afterwards."""

from __future__ import annotations

import logging
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from dataclasses import replace as replaced
from typing import Any

import pytest

from reprocessing.domain.lifecycle import ParkedReason
from reprocessing.models import Lane, Letter, Rule, Target
from reprocessing.pipeline.replay import late_answers, send_batches
from reprocessing.pipeline.routing import route
from reprocessing.pipeline.routing.evaluate_rules import RuleBook
from reprocessing.store.replay.intent import IntendedSend
from reprocessing.store.routing import rule_changes
from tests.conditions import eventually
from tests.proof.poison.arrivals import heard
from tests.proof.poison.corpus import Payload
from tests.proof.poison.secrecy import quoted
from tests.proof.poison.station import Form, Station, expected
from tests.reprocessing.pipeline.bench import Workbench
from tests.reprocessing.pipeline.rulings import rule
from tests.reprocessing.pipeline.targets.kinds import Kind, World

TEN = 10
_MIB = 1_048_576
_LONGEST = 1_300  #: characters of any reason that is shown

Batch = list[Payload]


@dataclass
class Cycle:
    """What is known of one cycle.

    Attributes:
        buried: each message's payload, group, and place: of its batch, and in it.
        trips: the message ids of each trip to the wire.
        heard: what has arrived.
        problems: what did not hold, by the payload's name.
        states: in which state each payload's letter was left.
    """

    station: Station
    kind: Kind | None
    bench: Workbench
    buried: dict[str, tuple[Payload, str | None, tuple[int, int]]] = field(default_factory=dict)
    trips: list[list[str]] = field(default_factory=list)
    heard: Counter[Form] = field(default_factory=Counter)
    problems: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    states: dict[str, str] = field(default_factory=dict)


def batches(station: Station, placed: Iterable[tuple[Payload, int]]) -> Iterator[Batch]:
    """Batches of ten: payloads at their places, as many in one as come in the order of their places; else mates."""
    at: dict[int, Payload] = {}
    number = 0
    for payload, place in placed:
        if at and place <= max(at):
            yield _filled(station, at, number)
            at, number = {}, number + TEN
        at[place] = payload
    if at:
        yield _filled(station, at, number)


def _filled(station: Station, at: Mapping[int, Payload], number: int) -> Batch:
    return [at[place] if place in at else station.mate(number + place) for place in range(TEN)]


def run(station: Station, some: Iterable[Batch], caplog: pytest.LogCaptureFixture, world: World | None = None) -> Cycle:
    """Everything dies, is captured once and replayed for one turn; what was broken is in the answer's problems.

    Without a world the target is a queue, and nothing stands before it.
    """
    cycle = _opened(station, world)
    bench = cycle.bench
    for name, condition in station.rules:
        rule(f"{name}-{bench.name}", "quarantine", condition)
    for number, batch in enumerate(some):
        _bury(cycle, batch, number)
    if station.dies:
        _die(bench, len(cycle.buried))
    caplog.clear()
    with caplog.at_level(logging.INFO), _in_order(cycle):
        bench.capture(seconds=60)
        bench.enlist()
        bench.replay(seconds=120)
        late_answers.wait_for_all(10)
    _judge(cycle, logged(caplog))
    return cycle


def logged(caplog: pytest.LogCaptureFixture) -> str:
    """What the service logged, with tracebacks; moto's server is none of it."""
    ours = [one for one in caplog.records if one.name != "werkzeug"]
    return "\n".join(f"{one.getMessage()}\n{one.exc_text or ''}" for one in ours)


def without_rules(cycle: Cycle) -> None:
    """The rules are disabled, and there is another turn: what they held arrives, too; judged anew."""
    for one in Rule.objects.filter(name__endswith=cycle.bench.name):
        rule_changes.set_enabled(one.pk, enabled=False, by="a person", reason="it cannot read them")
    cycle.station = replaced(cycle.station, rules=())
    route.wake_stopped(RuleBook.load())
    with _in_order(cycle):
        cycle.bench.replay(seconds=120)
    _judge(cycle, "")


def _opened(station: Station, world: World | None) -> Cycle:
    if world is not None:
        kind = station.kind_in(world)
        bench = kind.bench(**station.fields)
        Target.objects.filter(pk=bench.target.pk).update(**station.target_fields)
        bench.target.refresh_from_db()
    else:
        kind = None
        fields = {"backoff_base": 60, "backoff_jitter": "none", **station.fields}
        row = {"kind": "celery" if station.kind == "celery" else "sqs", **station.target_fields}
        bench = Workbench(fifo=station.fifo, fields=fields, target_fields=row)
    bench.conf = replaced(bench.conf, intent_size=TEN)
    return Cycle(station, kind, bench)


def _bury(cycle: Cycle, batch: Batch, number: int) -> None:
    bench = cycle.bench
    url = bench.source_url if cycle.station.dies else bench.dlq_url
    entries = [one.entry() | {"Id": str(place)} for place, one in enumerate(batch)]
    if cycle.station.fifo:
        for one in entries:
            one["MessageDeduplicationId"] = uuid.uuid4().hex
            one.setdefault("MessageGroupId", f"group-{uuid.uuid4().hex}")
    groups = [one.get("MessageGroupId") for one in entries]
    if sum(one.size for one in batch) <= _MIB:
        answer = bench.sqs.send_message_batch(QueueUrl=url, Entries=entries)
        assert not answer.get("Failed"), answer["Failed"]
        ids = {int(one["Id"]): one["MessageId"] for one in answer["Successful"]}
    else:
        ids = {int(one.pop("Id")): bench.sqs.send_message(QueueUrl=url, **one)["MessageId"] for one in entries}
    for place, payload in enumerate(batch):
        cycle.buried[ids[place]] = payload, groups[place], (number, place)


def _die(bench: Workbench, number: int) -> None:
    """Nobody acknowledges what is received from the source, so that SQS moves it to the dlq."""
    policy = f'{{"deadLetterTargetArn": "{bench.arn(bench.dlq_url)}", "maxReceiveCount": 1}}'
    bench.sqs.set_queue_attributes(QueueUrl=bench.source_url, Attributes={"RedrivePolicy": policy})

    def all_died() -> bool:
        while bench.sqs.receive_message(QueueUrl=bench.source_url, MaxNumberOfMessages=TEN, VisibilityTimeout=0).get(
            "Messages"
        ):
            pass
        return bench.left() == number

    eventually(all_died, within=60)


@contextmanager
def _in_order(cycle: Cycle) -> Iterator[None]:
    """What goes to the wire together goes in the order of its batch."""
    post, order = send_batches.letters, {pk: at for pk, (_, _, at) in cycle.buried.items()}

    def ordered(intended: Sequence[IntendedSend], *args: Any, **options: Any) -> Any:  # noqa: ANN401  # handed through
        going = sorted(intended, key=lambda one: order[one.message_id])
        cycle.trips.append([one.message_id for one in going])
        return post(going, *args, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(send_batches, "letters", ordered)
        yield


def _judge(cycle: Cycle, log: str) -> None:
    letters = {one.message_id: one for one in Letter.objects.filter(dlq=cycle.bench.dlq).select_related(
        "lane", "duplicate_of").prefetch_related("history")}  # fmt: skip
    cycle.problems = defaultdict(list, cycle.problems)
    last_errors = list(Rule.objects.values_list("last_error", flat=True))
    wanted: Counter[Form] = Counter()
    owners: defaultdict[Form, list[str]] = defaultdict(list)
    for message_id, (payload, group, _) in cycle.buried.items():
        letter = letters.get(message_id)
        if letter is None:
            cycle.problems[payload.name].append("it was never captured")
            continue
        cycle.states[payload.name] = letter.state
        if letter.state == "delivered":
            form = expected(cycle.station, cycle.bench, payload, letter, group)
            wanted[form] += 1
            owners[form].append(payload.name)
        found = [_fate(cycle.station, payload, letter)]
        if not is_mate(payload):
            found += [_placed(cycle, message_id), _shown([*_said(letter), *last_errors], letter.detail)]
            found += ["it is quoted in what is said of it"] if quoted([*_said(letter), *last_errors], payload) else []
            found += ["it is quoted in a log"] if quoted(log, payload) else []
        cycle.problems[payload.name] += [one for one in found if one]
    _compare(cycle, wanted, owners)
    cycle.problems = {name: found for name, found in cycle.problems.items() if found}


def is_mate(payload: Payload) -> bool:
    return payload.name.startswith("mate ")


def _placed(cycle: Cycle, message_id: str) -> str:
    """Whether it went to the wire, where it did, in its place among those of its batch."""
    batch, place = cycle.buried[message_id][2]
    trips = [one for one in cycle.trips if message_id in one]
    for one in trips:
        its = [cycle.buried[each][2] for each in one]
        whole = len(its) == TEN and {number for number, _ in its} == {batch}
        if whole and one.index(message_id) != place:
            return f"it went as number {one.index(message_id)}"
    return "" if len(trips) <= 1 else f"it went to the wire {len(trips)} times"


def _compare(cycle: Cycle, wanted: Counter[Form], owners: Mapping[Form, list[str]]) -> None:
    """All that was called delivered has arrived, as it was, once; and nothing else has."""
    cycle.heard += heard(cycle.station, cycle.kind, cycle.bench)
    got = cycle.heard
    for form in wanted - got:
        for name in owners[form]:
            cycle.problems[name].append("it is called delivered, and did not arrive as it was, or one like it")
    if cycle.station.exact and (more := got - wanted):
        for form in more:
            name = next(iter(owners.get(form, [])), "nobody")
            cycle.problems[name].append(f"arrived and is not told of: {len(form[0])} characters")


def _fate(station: Station, payload: Payload, letter: Letter) -> str:
    """What is wrong about where a letter stands; nothing: it is delivered, or stopped as it may be."""
    state, why = letter.state, _why(letter)
    held = payload.guarded and bool(station.rules)
    if is_mate(payload):
        good = state == "delivered"
    elif payload.spent:
        good = state == "parked" and letter.reason in {ParkedReason.ATTEMPTS_SPENT, *station.parks}
    elif held:
        good = state == "waiting" and "could not be evaluated: " in why
    elif state == "parked":
        good = letter.reason in station.parks and bool(letter.detail)
    elif state == "duplicate":
        good = letter.duplicate_of is not None and letter.duplicate_of.state == "delivered"
    else:
        good = state == "delivered"
    return "" if good else f"it is {state} {letter.reason}: {why[:100]} {letter.detail[:100]} {_last(letter)[:100]}"


def _last(letter: Letter) -> str:
    tried = sorted(letter.history.all(), key=lambda one: one.no)
    return f"{tried[-1].outcome}: {tried[-1].detail}" if tried else ""


def _why(letter: Letter) -> str:
    lane: Lane | None = letter.lane
    return lane.why if lane is not None else ""


def _said(letter: Letter) -> list[str]:
    """Everything that lists and pages say of a letter, but of a queue that AWS names."""
    said = [letter.reason, _why(letter), *(one.detail or "" for one in letter.history.all())]
    return said if letter.detail.startswith("it failed in arn:") else [*said, letter.detail]


def _shown(said: Sequence[str], detail: str) -> str:
    longest = max(len(one) for one in (*said, detail))
    return "" if longest <= _LONGEST else f"{longest} characters are said of it"
