"""The steps of a letter's life at which a fault can strike, each where the code takes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from reprocessing.store.replay import intent
from reprocessing.store.runs import enlistment
from tests.proof.failpoints.shapes import (
    ABSENCE,
    ALL,
    CAPTURED,
    HELD,
    HELD_ABSENCE,
    HELD_ACCEPTED,
    OUTAGE,
    POISON,
    Shape,
)

Only = Callable[..., bool]


def _always(*_: Any, **__: Any) -> bool:  # noqa: ANN401  whatever is called there
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One step.

    Attributes:
        name: of the step.
        where: `module:attribute` of the function that is passed there.
        after: the step is when the function has returned, and came to something; else when it is called.
        within: counts only while this other function is on the stack of the thread.
        only: counts only for calls with these arguments.
        shapes: the worlds in which it is passed.
        most: the fault strikes at one of so many first passages.
        in_database: an error of Postgres is natural here.
        meters: whoever passes here asks Redis, here or soon after.
        sends: letters have left, or will before their settlement is tried: what the fault leaves open is repeated.
        alone: one passage takes all there is, and the next might be another worker's: they begin after the fault.
    """

    name: str
    where: str
    after: bool = False
    within: str | None = None
    only: Only = _always
    shapes: tuple[Shape, ...] = ALL
    most: int = 1
    in_database: bool = False
    meters: bool = False
    sends: bool = False
    alone: bool = False


def _is(*statements: str) -> Only:
    """Whether a statement of `rows` is one of these."""
    return lambda *args, **_: any(statement in args for statement in statements)


def _asks(action: str) -> Only:
    """Whether a request to SQS is of this action."""
    target = f"AmazonSQS.{action}"
    return lambda _session, request, *_, **__: any(target in str(value) for value in request.headers.values())


#: Every request passes it, those of templates (lean_requests) and those of botocore.
_API: Final = "botocore.httpsession:URLLib3Session.send"
_WRITING: Final = "reprocessing.pipeline.capture.capture:_Capture._write"
_TAKING_BACK: Final = "reprocessing.pipeline.capture.capture:_Capture._take_back"
_CLEARING: Final = "reprocessing.pipeline.capture.delete_copies:delete_from_dlqs"

POINTS: Final = (
    Point(name="copies received, not written", where=_WRITING, most=2),
    Point(
        name="copies written, not deleted", where="reprocessing.store.capture.received_copies:admit", after=True,
        shapes=CAPTURED, most=2, in_database=True,
    ),
    Point(
        name="copies deleted at capture, not noted", where="reprocessing.store.capture.capture_lease:mark_gone",
        within=_WRITING, shapes=CAPTURED, most=2, in_database=True,
    ),
    Point(name="letters placed, run not enlisted", where="reprocessing.pipeline.runs.plan:place_captured", after=True),
    Point(
        name="inside the enlisting transaction", where="reprocessing.store.rows:fetch", after=True,
        only=_is(enlistment._STEPS.enlist, enlistment._STEPS_WITHOUT_RUN.enlist), in_database=True,
    ),
    Point(
        name="lanes leased, no head through the gate", where="reprocessing.pipeline.replay.lease_lanes:lease_due",
        after=True, most=2, meters=True, alone=True,
    ),
    Point(
        name="heads through the gate, intent not asked", where="reprocessing.pipeline.replay.replay_slice:intend",
        most=3, in_database=True, meters=True,
    ),
    Point(
        name="inside the intent's transaction", where="reprocessing.store.rows:fetch", after=True,
        only=_is(intent._INTENT), most=3, in_database=True, meters=True,
    ),
    Point(
        name="intent committed, nothing sent", where="reprocessing.pipeline.replay.replay_slice:intend", after=True,
        most=3, meters=True, sends=True,
    ),
    Point(
        name="deadline asked, nothing written", where=_API, only=_asks("SendMessageBatch"), most=3, meters=True,
        sends=True,
    ),
    Point(
        name="SQS has taken it, the answer not read", where=_API, after=True, only=_asks("SendMessageBatch"), most=3,
        meters=True, sends=True,
    ),
    Point(
        name="answered, not settled", where="reprocessing.pipeline.replay.settle:attempts", most=3, in_database=True,
        meters=True, sends=True,
    ),
    Point(
        name="inside the settlement's transaction", where="reprocessing.pipeline.replay.settle:_next", most=3,
        in_database=True, meters=True, sends=True,
    ),
    Point(
        name="settled, copies not deleted", where="reprocessing.pipeline.replay.settle:attempts", after=True,
        shapes=HELD_ACCEPTED, most=3, meters=True,
    ),
    Point(
        name="copies deleted, not noted", where="reprocessing.store.capture.capture_lease:mark_gone", within=_CLEARING,
        shapes=HELD, in_database=True,
    ),
    Point(
        name="copies deleted beside the sends, not noted", where="reprocessing.store.capture.capture_lease:mark_gone",
        within="reprocessing.pipeline.replay.copy_deletion:CopyDeletion._record", shapes=HELD_ACCEPTED,
        in_database=True,
    ),
    Point(
        name="return recorded, lane not told", where="reprocessing.store.ordering.lane_state:advance",
        within=_TAKING_BACK, in_database=True,
    ),
    Point(
        name="return committed, breaker not told",
        where="reprocessing.pipeline.replay.after_settlement:update_breakers_and_waves", within=_TAKING_BACK,
    ),
    Point(
        name="inside the promotion's transaction", where="reprocessing.store.ordering.lane_state:advance",
        within="reprocessing.pipeline.outcomes.resolve_outcomes:_close", shapes=ABSENCE, most=2, in_database=True,
    ),
    Point(
        name="promoted, copies not deleted", where=_CLEARING,
        within="reprocessing.pipeline.outcomes.resolve_outcomes:_close", shapes=ABSENCE, most=2,
    ),
    Point(
        name="swept, copies not deleted", where="reprocessing.pipeline.capture.delete_copies:delete_from_dlq",
        within="reprocessing.pipeline.maintenance.recover:sweep_dlq", shapes=HELD,
    ),
    Point(
        name="hidden for longer, not noted", where="reprocessing.pipeline.maintenance.recover:extend", after=True,
        shapes=HELD_ABSENCE, in_database=True,
    ),
    Point(
        name="breaker opened, its failures not spared", where="reprocessing.store.safety.circuit_breakers:spare_epochs",
        shapes=OUTAGE, most=2, in_database=True,
    ),
    Point(
        name="waves begin anew, the old one not settled", where="reprocessing.store.safety.waves:_open_next",
        only=lambda _run, size: size == 1, shapes=OUTAGE, most=2, in_database=True,
    ),
    Point(
        name="target given up, run not paused", where="reprocessing.store.safety.failing_targets:pause_run",
        shapes=OUTAGE, in_database=True,
    ),
    Point(
        name="inside the transaction that parks what has no attempts left",
        where="reprocessing.store.ordering.lane_state:advance", within="reprocessing.pipeline.replay.settle:heads",
        shapes=POISON, in_database=True,
    ),
)  # fmt: skip

NAMED: Final = {one.name: one for one in POINTS}
