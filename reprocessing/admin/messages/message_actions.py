"""Describe the state of a message in one sentence, and make the buttons on the message's page.

A button that a person may not use is disabled and shows the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, assert_never
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from reprocessing.admin.messages.readable_bytes import visible
from reprocessing.admin.messages.uncounted_attempts import counted_attempts, failed_attempts
from reprocessing.admin.site import visible_rows
from reprocessing.admin.site.buttons import Button, button
from reprocessing.domain.lifecycle import OPEN_STATES, LetterState, ParkedReason
from reprocessing.domain.outcomes.delivery_status import DeliveryStatus
from reprocessing.models import AuditAct, Letter, Run
from reprocessing.models.dlq import Mode
from reprocessing.models.run import RunKind, RunState


def action_buttons(offered: Iterable[Sequence[str]]) -> list[Button]:
    """Return a button for each action.

    Args:
        offered: for each action its name, a URL or URL name, the button's label, and why this person may not use it
            (empty: the person may).
    """
    return [Button(label, _address(address), closed) for _, address, label, closed in offered]


def page_buttons(letter: Letter, request: HttpRequest) -> dict[str, Any]:
    """Return template context: the buttons that edit the message, stop its key queue, and make a rule from it.

    Only parked messages can be edited. The button that stops the key queue needs an unfinished message in a key queue.
    """
    parked, has_perm = letter.state == LetterState.PARKED, request.user.has_perm
    may_edit = has_perm("reprocessing.edit_parkedletter") and has_perm("reprocessing.view_payload")
    closed = "" if may_edit else "This needs the permissions to edit messages and to see payloads"
    edit = Button("Edit…", reverse("admin:parkedletter_edit", args=[letter.pk]), closed)
    closed = "" if has_perm("reprocessing.add_rule") else "This needs the permission to add rules"
    rule = Button("Add a rule…", f"{reverse('admin:reprocessing_rule_add')}?letter={letter.pk}", closed)
    return {
        "edit": edit if parked else None,
        "rule_way": rule,
        "is_parked": parked,
        "stop_lane": _stop_lane(letter, request),
    }


def _stop_lane(letter: Letter, request: HttpRequest) -> Button | None:
    """Return the button that stops the message's key queue; None: there is nothing to stop.

    There is nothing to stop if the message is in no key queue or is finished. If the key queue is stopped already,
    `next_action` returns a button that opens it.
    """
    if letter.state not in OPEN_STATES or letter.lane is None or letter.lane.stopped_at is not None:
        return None
    address = reverse("admin:reprocessing_lane_stop", args=[letter.lane_id])
    return button(request, "Stop key queue…", address, ("stop_lane", "stop key queues"))


def state_text(letter: Letter, waits: str, known: DeliveryStatus) -> str:
    """Return the state of a message in a sentence.

    `waits`: why the message's key queue waits; empty: the message is in no key queue. `known`: what is known about the
    delivery of the message.
    """
    state = LetterState(letter.state)
    match state:
        case LetterState.CAPTURED:
            return f"Captured: {_next_run(letter)}."
        case LetterState.WAITING:
            return visible(f"Queued: {waits or 'it is sent when it is first in its key queue'}.")
        case LetterState.SENDING | LetterState.AWAITING:
            return visible(known.sentence)
        case LetterState.DELIVERED | LetterState.DUPLICATE:
            return f"{visible(known.sentence)}{_since(letter)}"
        case LetterState.PARKED:
            return _parked(letter)
        case LetterState.DISCARDED:
            return visible(f"Discarded{_who_discarded(letter)}.{_since(letter)}")
        case _:
            assert_never(state)


def _next_run(letter: Letter) -> str:
    if letter.run is not None:
        return f"the run {letter.run} will queue it"
    is_automatic = letter.dlq.mode == Mode.AUTOMATIC
    return "the automatic run of the DLQ will take it" if is_automatic else "it is in no run"


def _parked(letter: Letter) -> str:
    if letter.reason == ParkedReason.ATTEMPTS_SPENT and letter.attempts:
        return f"Parked{_since(letter)}: {failed_attempts(letter)}."
    tried = f" after {counted_attempts(letter)}" if letter.attempts else ""
    return f"Parked{tried}{_since(letter)}: {ParkedReason(letter.reason).sentence}"


def next_action(letter: Letter, request: HttpRequest) -> Button | None:
    """Return the button for the next step with a message; None: no step is needed, or the page has other buttons.

    For a captured message without run, the button plans a run, or opens the automatic run or the DLQ's settings. For a
    message that cannot be sent now, it opens the stopped key queue, the stopped DLQ, or the planned or paused run. For
    a duplicate, it opens the message that was delivered.
    """
    match LetterState(letter.state):
        case LetterState.CAPTURED if letter.run is None:
            return _to_run(letter, request)
        case LetterState.CAPTURED | LetterState.WAITING:
            return _what_holds(letter, request)
        case LetterState.DUPLICATE:
            return _delivered_original(letter, request)
        case _:
            return None


def _to_run(letter: Letter, request: HttpRequest) -> Button | None:
    """Return the button for a captured message that is in no run. It depends on the DLQ's mode.

    In mode manual it plans a run, in mode observe it opens the DLQ's settings. In mode automatic, the DLQ's automatic
    run will take the message, so the button opens that run. None: that run does not exist yet, and nothing is stopped.
    """
    match Mode(letter.dlq.mode):
        case Mode.MANUAL:
            address = f"{reverse('admin:reprocessing_run_add')}?{urlencode({'dlq': letter.dlq_id})}"
            return button(request, "Plan a run…", address, ("operate_run", "operate runs"))
        case Mode.OBSERVE:
            address = reverse("admin:reprocessing_deadletterqueue_examine", args=[letter.dlq_id])
            return button(request, "Change the mode…", address, ("change_deadletterqueue", "change DLQs"))
        case Mode.AUTOMATIC:
            return _what_holds(letter, request) or _automatic_run(letter, request)


def _automatic_run(letter: Letter, request: HttpRequest) -> Button | None:
    unfinished = (RunState.RUNNING, RunState.PAUSED)
    run = Run.objects.filter(dlq=letter.dlq_id, kind=RunKind.AUTOMATIC, state__in=unfinished).order_by("-pk").first()
    if run is None:
        return None
    paused = "paused " if run.state == RunState.PAUSED else ""
    address = reverse("admin:reprocessing_run_change", args=[run.pk])
    return button(request, f"Open the {paused}automatic run", address, ("view_run", "see runs"))


def _what_holds(letter: Letter, request: HttpRequest) -> Button | None:
    """Return a button that opens what keeps a message from being sent; None: nothing keeps it.

    This is a stopped key queue, a stopped DLQ, or a run that is planned or paused.
    """
    if letter.lane is not None and letter.lane.stopped_at is not None:
        address = reverse("admin:reprocessing_lane_change", args=[letter.lane_id])
        return button(request, "Open the stopped key queue", address, ("view_lane", "see key queues"))
    if letter.dlq.stopped_at is not None:
        address = reverse("admin:reprocessing_deadletterqueue_change", args=[letter.dlq_id])
        return button(request, "Open the stopped DLQ", address, ("view_deadletterqueue", "see DLQs"))
    run: Run | None = letter.run
    if run is not None and run.state in {RunState.PLANNED, RunState.PAUSED}:
        address = reverse("admin:reprocessing_run_change", args=[run.pk])
        return button(request, f"Open the {run.state} run", address, ("view_run", "see runs"))
    return None


def _delivered_original(letter: Letter, request: HttpRequest) -> Button | None:
    original = visible_rows.rows(request, Letter.objects).filter(duplicates=letter).first()
    if original is None:
        return None
    address = reverse("admin:reprocessing_letter_change", args=[original.pk])
    return button(request, "Open the delivered message", address, ("view_letter", "see messages"))


def _who_discarded(letter: Letter) -> str:
    """Return who discarded a message, and why, as the end of a sentence.

    Examples: " by ann: sent twice" for the user ann, and " by the rule old" for the rule old.
    """
    entry = letter.reviews.filter(act=AuditAct.DISCARDED).order_by("-at", "-pk").first()
    if entry is not None:
        return f" by {entry.by}: {entry.reason.rstrip('.')}"
    return f" by the rule {letter.rule.name}" if letter.rule else ""


def _since(letter: Letter) -> str:
    return f" ({letter.finished_at:%Y-%m-%d %H:%M:%S} UTC)" if letter.finished_at else ""


def _address(text: str) -> str:
    try:
        return reverse(text) if text.startswith("admin:") else text
    except NoReverseMatch:
        return text
