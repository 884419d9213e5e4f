"""A drain that a program plans, starts, watches, pauses, resumes and aborts, with the real pipeline and real queues."""

from __future__ import annotations

from typing import Any

import pytest

from reprocessing.models import AuditEntry, Run
from reprocessing.pipeline.runs import drain
from reprocessing.store.runs.plans import RunRequest
from tests.reprocessing.api.callers import problem, program, told
from tests.reprocessing.pipeline.bench import Clock, Workbench

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.soak]


def counts(run: dict[str, Any]) -> dict[str, int]:
    found = run["progress"]
    return {name: found[name] for name in ("messages", "delivered", "waiting", "parked") if found[name]}


def test_a_drain_is_planned_watched_paused_and_aborted(clock: Clock) -> None:
    bench = Workbench()
    caller, dlq = program(), bench.dlq.name
    for n in range(1, 8):
        bench.bury(f"{n}", key="k" if n < 7 else "other")

    looked = told(caller.post("/runs", dlq=dlq))
    assert (looked["dry_run"], looked["run"], Run.objects.count()) == (True, None, 0)
    made = told(caller.post("/runs", dlq=dlq, run="monday", key="k1", confirm=True))["run"]
    assert (made["state"], made["selected"]) == ("planned", None)
    assert "the DLQ is captured first" in problem(caller.post("/runs/monday/start", confirm=True), 409)
    bench.capture()
    planned = told(caller.get("/runs/monday"))
    assert (planned["selected"], counts(planned)) == (7, {"messages": 7, "waiting": 7})

    looked = told(caller.post("/runs/monday/start"))
    assert looked["says"][0].startswith("Workers send 7 messages, in order per key")
    assert (looked["changed"], looked["run"]["state"]) == (False, "planned")
    assert bench.delivered_bodies() == []
    began = told(caller.post("/runs/monday/start", version=looked["run"]["version"], confirm=True))["run"]
    assert (began["state"], began["started_at"] is not None) == ("running", True)
    bench.replay(seconds=0.01)
    seen = told(caller.get("/runs/monday"))
    sent = seen["progress"]["delivered"]
    assert 0 < sent < 8

    paused = told(caller.post("/runs/monday/pause", confirm=True, reason="consumer is slow"))["run"]
    assert (paused["state"], paused["why"], paused["stopped_by"]) == (
        "paused", "consumer is slow", f"owner of {caller.name}, API token {caller.name}",
    )  # fmt: skip
    bench.replay(seconds=0.5)
    assert told(caller.get("/runs/monday"))["progress"]["delivered"] == sent
    assert "It was paused by" in problem(caller.post("/runs/monday/pause", confirm=True), 409)
    stale = caller.post("/runs/monday/resume", version=began["version"], confirm=True)
    assert "monday changed since you saw it" in problem(stale, 409)
    assert told(caller.post("/runs/monday/resume", confirm=True))["run"]["state"] == "running"

    ended = told(caller.post("/runs/monday/abort", confirm=True, stop_dlq=True))["run"]
    assert ended["state"] == "aborted"
    assert told(caller.get(f"/dlqs/{dlq}"))["stopped"]["reason"] == "a test"
    assert "It was aborted by" in problem(caller.post("/runs/monday/resume", confirm=True), 409)
    assert [run["run"] for run in told(caller.get("/runs", dlq=dlq, state="aborted"))["items"]] == ["monday"]
    acts = AuditEntry.objects.filter(run__name="monday").order_by("pk").values_list("act", flat=True)
    assert list(acts) == ["planned", "started", "paused", "resumed", "aborted"]


def test_messages_of_a_dlq_are_delivered_and_their_history_tells_how(clock: Clock) -> None:
    bench = Workbench()
    caller = program()
    bench.bury('{"card": "visa-in-clear"}', key="k")
    bench.capture()
    plan: dict[str, Any] = {"dlq": bench.dlq.name, "capture": False, "waves": False}
    run = told(caller.post("/runs", confirm=True, **plan))["run"]
    assert (run["selected"], run["run"].startswith("run-")) == (1, True)
    (captured,) = told(caller.get("/messages", dlq=bench.dlq.name, state="captured"))["items"]
    assert (captured["state"], captured["expires_at"] is not None) == ("captured", True)
    told(caller.post(f"/runs/{run['run']}/start", confirm=True))
    bench.replay()
    assert bench.delivered_bodies() == ['{"card": "visa-in-clear"}']
    message = told(caller.get(f"/messages/{captured['redrive_id']}"))
    assert (message["state"], message["run"], message["attempts"]) == ("delivered", run["run"], 1)
    assert [(one["no"], one["outcome"], one["run"]) for one in message["history"]] == [(1, "accepted", run["run"])]
    assert "visa-in-clear" not in str(message)
    status = told(caller.get(f"/dlqs/{bench.dlq.name}/status"))
    assert (status["messages"]["delivered"], status["runs"][0]["run"]) == (1, run["run"])


def test_a_run_that_cannot_be_planned_says_why(clock: Clock) -> None:
    bench = Workbench()
    caller, dlq = program(), bench.dlq.name
    assert "has no such source queue. Its source queues: " in problem(caller.post("/runs", dlq=dlq, source="x"), 422)
    both = {"sent_after": "2026-03-02T00:00:00Z", "sent_before": "2026-03-01T00:00:00Z"}
    assert "Swap the two times" in problem(caller.post("/runs", dlq=dlq, **both), 422)
    told(caller.post("/runs", dlq=dlq, run="monday", confirm=True))
    other = caller.post("/runs", dlq=dlq, run="monday", limit=1, confirm=True)
    assert "To begin another run, choose another id." in problem(other, 409)
    type(bench.dlq).objects.update(mode="automatic")
    assert "is in mode automatic" in problem(caller.post("/runs", dlq=dlq), 409)


def test_a_plan_without_messages_says_that_it_has_nothing_to_send() -> None:
    bench, caller = Workbench(), program()
    bench.capture()
    plan: dict[str, Any] = {"dlq": bench.dlq.name, "capture": False, "confirm": True}
    says = told(caller.post("/runs", run="empty", **plan))["says"]
    assert says == ["empty is planned. It has no message to send. A plan that nobody starts is aborted after a day."]
    bench.bury("1")
    bench.capture()
    says = told(caller.post("/runs", run="full", **plan))["says"]
    assert says[0] == "full is planned. Nothing is sent until somebody starts it."


def test_a_run_has_the_rate_and_the_order_that_were_asked_for() -> None:
    bench, caller = Workbench(), program()
    told(caller.post("/runs", dlq=bench.dlq.name, run="slow", rate=0.5, advance="accepted", confirm=True))
    seen = told(caller.get("/runs/slow"))
    assert (seen["rate"], seen["waits_for_outcomes"]) == (0.5, False)
    problem(caller.post("/runs", dlq=bench.dlq.name, rate=0), 422)
    type(bench.dlq).objects.update(when_parked="hold")
    assert "its order must be kept" in problem(caller.post("/runs", dlq=bench.dlq.name, advance="accepted"), 409)


def test_a_plan_that_would_be_replaced_is_named_before_and_after() -> None:
    bench = Workbench()
    caller = program()
    bench.bury("one")
    bench.capture()
    drain.plan_run(bench.dlq, RunRequest("orders-1", "ann", named=False))
    plan: dict[str, Any] = {"dlq": bench.dlq.name, "capture": False}
    replaced = "the plan orders-1 of ann, which has 1 message."
    assert told(caller.post("/runs", **plan))["says"][1:] == [f"It would replace {replaced}"]
    made = told(caller.post("/runs", run="deploy", confirm=True, **plan))
    assert (made["says"][1:], made["run"]["selected"]) == ([f"It replaces {replaced}"], 1)
    assert told(caller.post("/runs", run="later", confirm=True, **plan))["says"][1:] == []
