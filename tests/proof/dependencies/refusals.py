"""What befalls calls of SQS: of the dlqs, of their targets, and of the service's own queues."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from redrive_service.sandbox.servers.local_sqs import OWN_QUEUES
from tests.conditions import eventually
from tests.proof.dependencies.outages import Fired, Strike
from tests.proof.dependencies.world import World, pass_seconds

Plan = list[dict[str, Any]]
Call = tuple[str, str]

LASTS = 10.0  # seconds that SQS is not well at all
GIVEN_UP = 35.0  # seconds after which nobody waits any more for an answer that does not come
FIRES_WITHIN = 150.0


def receives(world: World) -> list[Call]:
    return [("ReceiveMessage", flow.dlq) for flow in world.flows]


def own_receives(_: World) -> list[Call]:
    return [("ReceiveMessage", name) for name in OWN_QUEUES]


def deletes(world: World) -> list[Call]:
    return [("DeleteMessageBatch", flow.dlq) for flow in world.flows]


def own_deletes(_: World) -> list[Call]:
    return [("DeleteMessage", name) for name in OWN_QUEUES]


def looks(world: World) -> list[Call]:
    return [("GetQueueAttributes", flow.dlq) for flow in world.flows]


def sends(world: World) -> list[Call]:
    return [("SendMessageBatch", flow.source) for flow in world.flows]


def own_sends(_: World) -> list[Call]:
    return [("SendMessage", name) for name in OWN_QUEUES]


Calls = Callable[[World], list[Call]]
ALL: tuple[Calls, ...] = (receives, deletes, looks, sends, own_receives, own_deletes, own_sends)


def of(*calls: Calls, lasts: float = 0.0, **fault: object) -> Strike:
    """Each of these calls goes wrong, until each has; no oftener than `times`, where the fault has that."""

    def befall(world: World) -> Fired:
        found = [call for some in calls for call in some(world)]
        return carry_out(world, [{**fault, "action": action, "queue": queue} for action, queue in found], lasts)

    return befall


def carry_out(world: World, plan: Plan, lasts: float = 0.0) -> Fired:
    """Have the plan fire, all of it, for so many seconds at the least; then SQS is well again."""
    servers = world.servers
    servers.faults("PUT", plan)
    try:
        pass_seconds(lasts)
        eventually(lambda: not list(_silent(servers.faults("GET"))), within=FIRES_WITHIN, every=0.25)
    except AssertionError:
        silent = ", ".join(_silent(servers.faults("GET")))
        raise AssertionError(f"armed, and never fired: {silent}") from None
    finally:
        fired = servers.faults("GET")
        servers.faults("DELETE")
    return {"calls that failed": sum(one["fired"] for one in fired)}


def _silent(plan: Plan) -> Iterator[str]:
    return (f"{one['kind']} of {one['action']} at {one['queue']}" for one in plan if not one["fired"])


def errors(*told: tuple[int, str]) -> Strike:

    def befall(world: World) -> Fired:
        return carry_out(world, [
            {"kind": "error", "status": status, "code": code, "action": action, "queue": queue,
             "times": max(1, 3 // len(told))}
            for some in ALL for action, queue in some(world) for status, code in told
        ])  # fmt: skip

    return befall


def is_not_well(world: World) -> Fired:
    return carry_out(world, [{"kind": "error", "status": 500, "action": "*", "queue": None}], LASTS)


STALE = {"code": "ReceiptHandleIsInvalid", "message": "The receipt handle has expired."}


def handles_are_stale(world: World) -> Fired:
    """What was received is visible again before it is deleted, and deletes are told that they come too late."""
    return carry_out(world, [
        {"kind": "early_expiry", "seconds": 0, "times": 3, "action": "ReceiveMessage", "queue": queue}
        for some in (receives, own_receives) for _, queue in some(world)
    ] + [
        {"kind": "partial", "positions": [0, 2], **STALE, "times": 3, "action": action, "queue": queue}
        for action, queue in deletes(world)
    ] + [
        {"kind": "error", "status": 400, **STALE, "times": 3, "action": action, "queue": queue}
        for action, queue in own_deletes(world)
    ])  # fmt: skip


REFUSALS: dict[str, Strike] = {
    "sqs answers 500": errors((500, "InternalError")),
    "sqs answers 503": errors((503, "ServiceUnavailable")),
    "sqs throttles with 400": errors((400, "ThrottlingException")),
    "sqs throttles with 403": errors((403, "RequestThrottled")),
    "kms fails": errors((400, "KmsThrottled"), (400, "KmsAccessDenied"), (400, "KmsDisabled")),
    "sqs is not well at all": is_not_well,
    "answers are lost": of(*ALL, lasts=GIVEN_UP, kind="accept_then_timeout", times=1),
    "connections are dropped": of(*ALL, kind="drop", times=4),
    "calls hang": of(*ALL, lasts=GIVEN_UP, kind="hang", times=1),
    "entries fail": of(sends, deletes, kind="partial", positions=[0, 1, 3], times=5),
    "entries are throttled": of(sends, deletes, kind="partial", positions=[0, 4], code="RequestThrottled", times=5),
    "messages come twice": of(receives, own_receives, kind="duplicate", times=5),
    "messages are visible too soon": of(receives, own_receives, kind="early_expiry", seconds=1, times=5),
    "handles are stale": handles_are_stale,
    "receives are falsely empty": of(receives, own_receives, kind="false_empty", times=6),
}
