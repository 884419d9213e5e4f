"""Execute an approved action (`Deed`) exactly as it was stored, in the transaction that stores the approval."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, assert_never
from uuid import uuid4

from reprocessing.conf import Conf
from reprocessing.domain.approvals.deed import ApprovalRefused, Deed, DeedKind
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
        deed: the action.
        by: who acts, for the audit log: the two people, or one person who acts without a second.
        reason: why the action was requested.
        asked_at: when the action was requested. A bulk action leaves out messages that changed later.
        plan: the changes of the configuration file that the action applies; None: the action applies no file.
    """

    approval: int
    deed: Deed
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


def prepare(deed: Deed, conf: Conf) -> Plan | None:
    """Do what must be done before the transaction that executes an action, because it may call AWS.

    If the action applies a configuration file, plan the file again, and return the plan; else return None. If the
    action starts, resumes or reopens a run, ask AWS whether its own redrive moved messages of the run. If the action
    starts a run, also give the run the unfinished letters of ended runs. If the run then has other letters than at the
    request, the request becomes void.
    """
    if deed.kind is DeedKind.APPLY_CONFIGURATION:
        return frozen_plan.plan_again(deed, conf)
    _prepare_run(deed)
    return None


def _prepare_run(deed: Deed) -> None:
    if deed.kind not in {DeedKind.START_RUN, DeedKind.RESUME_RUN, DeedKind.REOPEN_RUN}:
        return
    run = Run.objects.select_related("dlq").filter(pk=deed.arguments["run"]).first()
    if run is None:
        return
    with suppress(QueueUnreachable):
        if deed.kind is DeedKind.START_RUN:
            follow_redrives.read_redrives(run.dlq)
        else:
            follow_redrives.check_before_resuming(run.dlq_id)
    if deed.kind is DeedKind.START_RUN:
        leftover_lanes.adopt_leftovers(run.dlq_id, run.pk)


def perform(order: Order, conf: Conf) -> Performed:
    """Execute an approved action in the caller's transaction; return what was done.

    Raises:
        ApprovalRefused: the action is not possible any more; the error's text says why. The caller must roll back.
        RedriveError: the service refused the action. The caller must roll back.
    """
    match order.deed.kind:
        case DeedKind.RELEASE | DeedKind.DISCARD | DeedKind.RESTORE:
            return _bulk(order) if "filter" in order.deed.arguments else _decide(order)
        case DeedKind.EDIT:
            return _bulk(order) if "filter" in order.deed.arguments else _edit(order, conf)
        case DeedKind.START_RUN | DeedKind.RESUME_RUN | DeedKind.REOPEN_RUN:
            return _run(order)
        case DeedKind.SAVE_RULE | DeedKind.SWITCH_RULE | DeedKind.REMOVE_RULE:
            return _rule(order)
        case DeedKind.CHANGE_SETTINGS:
            return _settings(order)
        case DeedKind.APPLY_CONFIGURATION:
            return _configuration(order)
        case _ as never:
            assert_never(never)


def _decide(order: Order) -> Performed:
    said, letters = order.deed.arguments, order.deed.letters
    match order.deed.kind:
        case DeedKind.RELEASE:
            due = datetime.fromisoformat(said["due"]) if said.get("due") else None
            done = act_on_parked.release(letters, due=due, target=said.get("target"), **order.signed)
        case DeedKind.DISCARD:
            done = act_on_parked.discard(letters, **order.signed)
        case _:
            done = act_on_parked.restore(letters, **order.signed)
    _require_all(done)
    verb = {DeedKind.RELEASE: "released", DeedKind.DISCARD: "discarded"}.get(order.deed.kind, "restored")
    return Performed(f"{len(done.done):,} message{'' if len(done.done) == 1 else 's'} {verb}.")


def _require_all(done: Reviewed) -> None:
    for why in done.refused.values():
        raise ApprovalRefused(f"{len(done.refused):,} of the messages cannot be changed: {why}.")


def _bulk(order: Order) -> Performed:
    said = order.deed.arguments
    criteria = MessageFilter.read(said["filter"])
    more = {name: value for name, value in said.items() if name != "filter" and value is not None}
    kind = BulkActionKind(order.deed.kind.value)
    if not bulk_actions.create(uuid4(), kind, criteria, more, opened=order.asked_at, **order.signed):
        raise ApprovalRefused("A bulk action with the same token exists. Request it again.")
    return Performed("The bulk action has started. Workers change the messages in batches.")


def _edit(order: Order, conf: Conf) -> Performed:
    said, deed = order.deed.arguments, order.deed
    if deed.body is None or deed.attributes is None:
        raise ApprovalRefused("The edited message is no longer stored.")
    to = Alteration(deed.body, unpack_attributes(deed.attributes), said["key"])
    seen = SeenLetter(datetime.fromisoformat(said["finished_at"]), said["revision"])
    done = edit.edit_letter(deed.letters[0], seen, to, names=conf.marks, replay=said["replay"], **order.signed)
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
    run = Run.objects.select_related("dlq").get(pk=order.deed.arguments["run"])
    match order.deed.kind:
        case DeedKind.START_RUN:
            done: object = run_transitions.start(run, **order.signed)
        case DeedKind.RESUME_RUN:
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
    said = order.deed.arguments
    match order.deed.kind:
        case DeedKind.SAVE_RULE:
            rule_changes.save_rule(said["name"], rule_fields.read(said["fields"]), **order.signed)
            return Performed(f"The rule {said['name']} is saved.", _wake)
        case DeedKind.SWITCH_RULE:
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
    after_commit = apply.apply_approved(order.plan, order.deed, **order.signed)
    return Performed(" ".join(["The configuration is applied.", *order.plan.still_sending()]), after_commit)


def _settings(order: Order) -> Performed:
    registration.lift(order.deed, **order.signed)
    return Performed("The settings are changed.")
