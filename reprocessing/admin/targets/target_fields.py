"""The form fields of a target's outcome, rate, circuit breaker and ramp-up, for the forms of targets and of DLQs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from django import forms

from reprocessing.admin.site.fields import OFF, NumberOrOff, choice, number, whole_number
from reprocessing.domain.errors import InvalidTarget
from reprocessing.models import Target
from reprocessing.models.target import MAX_RATE, MAX_SECONDS, MIN_RATE, Advance, Proof
from reprocessing.pipeline.dlqs import examine
from reprocessing.store.rights.visible_dlqs import VisibleDlqs
from reprocessing.store.targets import targets

#: The stored value of a field that the person emptied or set to "off". Fields that are not named here get None.
VALUES_OF_OFF: Final = {
    "parking_url": "", "ramp_from": 1.0, "message_type": "", "tenant": "", "answers": "", "content_type": "",
    "secret": "", "role_arn": "",
}  # fmt: skip
PACE: Final = ("proof", "advance", "window", "rate", "burst")
BRAKES: Final = tuple(targets.BREAKER_FIELDS)
#: Why a person who does not see all DLQs may not change a role: the service would assume any role for this person.
ROLE_REFUSAL: Final = (
    "The role decides what the service may reach in AWS, so only people who see the DLQs of all teams may change it. "
    "Ask one of them."
)
_AS_IS: Final = "unchanged; new: default"
_PROOFS: Final = (
    (Proof.ACCEPTED.value, "accepted: the target accepted the message"),
    (Proof.ABSENCE.value, "absence: the message did not come back to a DLQ (presumed)"),
    (Proof.ACKNOWLEDGED.value, "acknowledged: the consumer reported success"),
)
_ADVANCES: Final = (
    (Advance.ACCEPTED.value, "when the target accepted the previous message"),
    (Advance.SETTLED.value, "when the previous message's outcome is known"),
)


class TargetFieldsForm(forms.Form):
    """The form fields of a target's outcome, rate, circuit breaker and ramp-up. An unchanged field changes nothing."""

    proof = choice(
        "Outcome", _PROOFS,
        "When a message counts as delivered. Default: absence if the target has a registered DLQ, else accepted.",
        empty=_AS_IS,
    )  # fmt: skip
    advance = choice(
        "Next message", _ADVANCES,
        "When a key's next message is sent. Default: for standard queues with an ordering key, when the outcome is "
        "known; else when accepted.",
        empty=_AS_IS,
    )  # fmt: skip
    window = number(
        "Return window (s)",
        "Max time from a send until the failed message is back in the DLQ, or its consumer has reported. Default: the "
        "visibility timeout times maxReceiveCount + 1. If it is too short, a failed message counts as delivered.",
        least=0.001, most=MAX_SECONDS,
    )  # fmt: skip
    rate = NumberOrOff(
        least=MIN_RATE, most=MAX_RATE, label="Rate (messages/s)",
        help_text='For all workers together. Default: 10. "off": no limit, which may overload the consumer.',
    )  # fmt: skip
    burst = NumberOrOff(
        least=1,
        most=MAX_RATE,
        label="Burst (messages)",
        help_text='Max messages sent at once after a pause. Default and "off": as many as the rate allows in one '
        "second.",
    )
    breaker_threshold = whole_number(
        "Failures to open", "Number of failed attempts in a row that opens the circuit breaker. Default: 5.", most=1_000
    )
    breaker_ratio = number(
        "Failure ratio to open",
        "Share of failures among the latest attempts (20 or more) that opens the circuit breaker. Default: 0.5.",
        least=0.001,
        most=1,
    )
    breaker_cooldown = number(
        "Cooldown (s)",
        "Time from the opening of the circuit breaker to its first canary, one message as a test. Default: 30; "
        "doubled after each failed canary.",
        least=0.1,
        most=MAX_SECONDS,
    )
    breaker_closes_after = whole_number(
        "Canaries to close",
        "Canaries in a row that must succeed to close the circuit breaker. Default: 3.",
        most=1_000,
    )
    ramp_from = NumberOrOff(
        least=0.001,
        most=1,
        label="Ramp-up start (share of rate)",
        help_text='Share of the rate with which sending starts. Default: 0.1. "off": the full rate at once.',
    )
    ramp_every = number(
        "Ramp-up step (s)", "Min time before the rate doubles. Default: 10.", least=0.1, most=MAX_SECONDS
    )


def visible_target(seen: VisibleDlqs, named: str) -> Target | None:
    """Return the registered target with this ARN, URL or name; None: there is no such target.

    Raises:
        InvalidTarget: several targets have this name, or the person does not see the target.
    """
    found = examine.find_target(named)
    if found is not None and not seen.rows(Target.objects.filter(pk=found.pk)).exists():
        raise InvalidTarget(f'No target is named "{named}", or only DLQs of other teams use it.')
    return found


def refuse_other_role(form: forms.Form, seen: VisibleDlqs) -> None:
    """Add an error to the form if a person who does not see all DLQs changed the IAM role.

    The service would assume any entered role, so the change could give the person access to more of AWS.
    """
    if not seen.are_all and "role_arn" in form.changed_data:
        form.add_error("role_arn", ROLE_REFUSAL)


def changed_values(form: forms.Form, names: Iterable[str]) -> dict[str, Any]:
    """Return the values to store for the fields in `names` that the person changed, by field name.

    If the person emptied a field or set it to "off", its value is taken from `VALUES_OF_OFF`; if that has no such
    field, the value is None.
    """
    given = {name: form.cleaned_data[name] for name in names if name in form.changed_data}
    return {name: VALUES_OF_OFF.get(name) if value in (OFF, "", None) else value for name, value in given.items()}
