"""Execute an approved action (`RequestedAction`) exactly as it was stored, and in the approval's transaction."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, assert_never
from uuid import uuid4

from reprocessing.conf import Conf
from reprocessing.domain.approvals.requested_action import ActionKind, ApprovalRefused, RequestedAction
from reprocessing.domain.errors import QueueUnreachable
from reprocessing.domain.message.envelope import unpack_attributes
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.models import Run
from reprocessing.models.parking_lot import BulkActionKind
from reprocessing.pipeline.aws import follow_redrives
from reprocessing.pipeline.configuration import apply, frozen_plan
from reprocessing.pipeline.configuration.plan import Plan
from reprocessing.pipeline.parking_lot import act_on_parked, edit
from reprocessing.pipeline.parking_lot.act_on_parked import Reviewed
from reprocessing.pipeline.parking_lot.edit import Alteration, ChangedMeanwhile, Edited, SeenLetter, Unsendable
from reprocessing.pipeline.routing import route
from reprocessing.store.dlqs import registration
from reprocessing.store.parking_lot import bulk_actions
from reprocessing.store.routing import rule_changes, rule_fields
from reprocessing.store.runs import leftover_lanes, run_transitions


@dataclass(frozen=True, slots=True)
class Order:
    """An approved action that is to be executed.

    Attributes:
        approval: the id of the request for approval.
        action: the action.
        by: who acts, for the audit log: the two people, or one person who acts without a second.
        reason: why the action was requested.
        asked_at: when the action was requested. A bulk action leaves out messages that changed later.
        plan: the changes of the configuration file that the action applies; None: the action applies no file.
    """

    approval: int
    action: RequestedAction
    by: str
    reason: str
    asked_at: datetime
    plan: Plan | None = None

    @property
    def signed(self) -> dict[str, Any]:
        """Return the arguments `by`, `reason` and `approval` for the function that executes the action."""
        return {"by": self.by, "reason": self.reason, "approval": self.approval}


@dataclass(frozen=True, slots=True)
class Performed:
    """The action was executed. `summary`: a sentence for people that says what was done.

    `after_commit`: a function that the caller must call after the commit.
    """

    summary: str
    after_commit: Callable[[], object] = lambda: None


def prepare(action: RequestedAction, conf: Conf) -> Plan | None:
    """Do what must be done before the transaction that executes an action, because it may call AWS.

    If the action applies a configuration file, plan the file again, and return the plan; else return None. If the
    action starts, resumes or reopens a run, ask AWS whether its own redrive moved messages of the run. If the action
    starts a run, also give the run the unfinished letters of ended runs. If the run then has other letters than at the
    request, the request becomes void.
    """
    if action.kind is ActionKind.APPLY_CONFIGURATION:
        return frozen_plan.plan_again(action, conf)
    _prepare_run(action)
    return None


def _prepare_run(action: RequestedAction) -> None:
    if action.kind not in {ActionKind.START_RUN, ActionKind.RESUME_RUN, ActionKind.REOPEN_RUN}:
        return
    run = Run.objects.select_related("dlq").filter(pk=action.arguments["run"]).first()
    if run is None:
        return
    with suppress(QueueUnreachable):
        if action.kind is ActionKind.START_RUN:
            follow_redrives.read_redrives(run.dlq)
        else:
            follow_redrives.check_before_resuming(run.dlq_id)
    if action.kind is ActionKind.START_RUN:
        leftover_lanes.adopt_leftovers(run.dlq_id, run.pk)


def perform(order: Order, conf: Conf) -> Performed:
    """Execute an approved action in the caller's transaction; return what was done.

    Raises:
        ApprovalRefused: the action is not possible any more; the error's text says why. The caller must roll back.
        RedriveError: the service refused the action. The caller must roll back.
    """
    match order.action.kind:
        case ActionKind.RELEASE | ActionKind.DISCARD | ActionKind.RESTORE:
            return _bulk(order) if "filter" in order.action.arguments else _decide(order)
        case ActionKind.EDIT:
            return _bulk(order) if "filter" in order.action.arguments else _edit(order, conf)
        case ActionKind.START_RUN | ActionKind.RESUME_RUN | ActionKind.REOPEN_RUN:
            return _run(order)
        case ActionKind.SAVE_RULE | ActionKind.SWITCH_RULE | ActionKind.REMOVE_RULE:
            return _rule(order)
        case ActionKind.CHANGE_SETTINGS:
            return _settings(order)
        case ActionKind.APPLY_CONFIGURATION:
            return _configuration(order)
        case _ as never:
            assert_never(never)


def _decide(order: Order) -> Performed:
    said, letters = order.action.arguments, order.action.letters
    match order.action.kind:
        case ActionKind.RELEASE:
            due = datetime.fromisoformat(said["due"]) if said.get("due") else None
            done = act_on_parked.release(letters, due=due, target=said.get("target"), **order.signed)
        case ActionKind.DISCARD:
            done = act_on_parked.discard(letters, **order.signed)
        case _:
            done = act_on_parked.restore(letters, **order.signed)
    _require_all(done)
    verb = {ActionKind.RELEASE: "released", ActionKind.DISCARD: "discarded"}.get(order.action.kind, "restored")
    return Performed(f"{len(done.done):,} message{'' if len(done.done) == 1 else 's'} {verb}.")


def _require_all(done: Reviewed) -> None:
    for why in done.refused.values():
        raise ApprovalRefused(f"{len(done.refused):,} of the messages cannot be changed: {why}.")


def _bulk(order: Order) -> Performed:
    said = order.action.arguments
    criteria = MessageFilter.read(said["filter"])
    more = {name: value for name, value in said.items() if name != "filter" and value is not None}
    kind = BulkActionKind(order.action.kind.value)
    if not bulk_actions.create(uuid4(), kind, criteria, more, opened=order.asked_at, **order.signed):
        raise ApprovalRefused("A bulk action with the same token exists. Request it again.")
    return Performed("The bulk action has started. Workers change the messages in batches.")


def _edit(order: Order, conf: Conf) -> Performed:
    said, action = order.action.arguments, order.action
    if action.body is None or action.attributes is None:
        raise ApprovalRefused("The edited message is no longer stored.")
    to = Alteration(action.body, unpack_attributes(action.attributes), said["key"])
    seen = SeenLetter(datetime.fromisoformat(said["finished_at"]), said["revision"])
    done = edit.edit_letter(action.letters[0], seen, to, names=conf.marks, replay=said["replay"], **order.signed)
    match done:
        case Edited(no, left):
            if left:
                raise ApprovalRefused(f"The message cannot be released: {left.removesuffix('.')}.")
            return Performed(f"Edit {no} is saved." + (" The message is queued." if said["replay"] else ""))
        case ChangedMeanwhile(why):
            raise ApprovalRefused(f"The message cannot be edited: {why}.")
        case Unsendable(problems):
            raise ApprovalRefused(f"The message cannot be edited: {' '.join(problems)}")
        case _ as never:
            assert_never(never)


def _run(order: Order) -> Performed:
    run = Run.objects.select_related("dlq").get(pk=order.action.arguments["run"])
    match order.action.kind:
        case ActionKind.START_RUN:
            done: object = run_transitions.start(run, **order.signed)
        case ActionKind.RESUME_RUN:
            done = run_transitions.resume(run.pk, **order.signed)
        case _:
            done = run_transitions.reopen(run.pk, **order.signed)
    if done is None:
        raise ApprovalRefused(f"The run {run.name} is {run.state}, or AWS's own redrive moves its messages.")
    return Performed(
        f"The run {run.name} is running. Workers send its messages. Without workers: manage.py rerun {run.name}"
        " --confirm"
    )


def _rule(order: Order) -> Performed:
    said = order.action.arguments
    match order.action.kind:
        case ActionKind.SAVE_RULE:
            rule_changes.save_rule(said["name"], rule_fields.read(said["fields"]), **order.signed)
            return Performed(f"The rule {said['name']} is saved.", _wake)
        case ActionKind.SWITCH_RULE:
            rule_changes.set_enabled(said["rule"], enabled=said["enabled"], **order.signed)
            state = "enabled" if said["enabled"] else "disabled"
            return Performed(f"The rule {said['name']} is {state}.", _wake)
        case _:
            rule_changes.remove(said["rule"], **order.signed)
            return Performed(f"The rule {said['name']} is removed.", lambda: _erase(said["rule"]))


def _wake() -> None:
    route.wake_stopped(route.RuleBook.load())


def _erase(rule: int) -> None:
    _wake()
    rule_changes.erase(rule)


def _configuration(order: Order) -> Performed:
    if order.plan is None:
        raise ApprovalRefused("The configuration was not planned.")
    after_commit = apply.apply_approved(order.plan, order.action, **order.signed)
    return Performed(" ".join(["The configuration is applied.", *order.plan.still_sending()]), after_commit)


def _settings(order: Order) -> Performed:
    registration.lift(order.action, **order.signed)
    return Performed("The settings are changed.")
