"""Adding a dlq, or changing how one is watched, through the examination that add_dlq makes. Nothing of it acts."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.urls import reverse

from reprocessing import conf
from reprocessing.admin.site import examined_form
from reprocessing.admin.site.confirmed_action import Done
from reprocessing.admin.site.examined_form import Asked, Look, Sheet, digest
from reprocessing.admin.site.fields import (
    OFF,
    CrontabField,
    ExpressionsField,
    RoleField,
    SelectorField,
    choice,
    lines,
    number,
    slug,
    text,
    whole,
)
from reprocessing.admin.targets.target_fields import BRAKES, PACE, Pace, said
from reprocessing.domain.errors import QueueIsOutOfReach, TargetIsUnclear
from reprocessing.models import Act, DeadLetterQueue, Target
from reprocessing.models.dlq import DeleteWhen, Jitter, MissingKey, Mode, ParkedHead, StalePolicy
from reprocessing.models.target import FORTNIGHT, TargetKind
from reprocessing.pipeline.dlqs import examine
from reprocessing.pipeline.dlqs.examine import Examination, Wanted
from reprocessing.store.capture import capture_lease
from reprocessing.store.dlqs import automatic_redrive, registration

ADD, CHANGE = "reprocessing.add_deadletterqueue", "reprocessing.change_deadletterqueue"
_SHAPES: Final = "system:NAME, attribute:NAME, body:JMESPATH, message-id, content-hash or none."
#: Fields of the dlq's row, by their own names.
_ROW: Final = (
    "mode", "ordering_key", "sequence", "idempotency_key", "missing_key", "delete_when", "max_attempts", "backoff_base",
    "backoff_cap", "backoff_jitter", "quiet_for", "parked_head", "stale", "receive_ceiling", "parking_url", "at_once",
    "message_type", "tenant", "waves", "wave_success", "give_up_after", "role_arn", "custody_limit",
)  # fmt: skip
_MAY_BE_EMPTY: Final = (
    "give_up_after",
    "quiet_for",
    "receive_ceiling",
    "parking_url",
    "message_type",
    "tenant",
    "role_arn",
)
_TASKS: Final = {
    "strips_eta": "Tasks go without their eta", "strips_expires": "Tasks go without their expiry",
    "resets_retries": "Tasks go as if never retried", "renews_id": "Tasks go under new ids",
}  # fmt: skip
_YES_NO: Final = (("yes", "yes"), ("no", "no"))


class DlqSheet(Pace, Sheet):
    """Everything that can be said of a dlq; what is left as it stands, or empty on a new one, was not said."""

    sections = (
        ("Where it is", ("name", "url", "mode", "origins", "to", "role_arn")),
        ("Keys and order", ("ordering_key", "missing_key", "sequence", "idempotency_key", "stale", "parked_head")),
        ("Attempts", ("max_attempts", "backoff_base", "backoff_cap", "backoff_jitter")),
        ("What people may read who may not see payloads", ("open_fields",)),
        ("(Outcome and pace, of all its targets)", PACE),
        ("(Waves, breakers and ramps)", ("waves", "wave_success", "give_up_after", *BRAKES)),
        ("(Schedule, in mode automatic)", ("interval", "crontab", "at_once")),
        ("(Custody and parking)", ("delete_when", "custody_limit", "quiet_for", "receive_ceiling", "parking_url")),
        ("(What rules know its letters by)", ("message_type", "tenant")),
        ("(Celery workers)", ("kind", *_TASKS)),
    )

    name = slug("A name of your own: letters, digits, - and _.")
    url = forms.CharField(
        max_length=2_048, label="URL", help_text="As SQS shows it. Of one that was added it stays what it is."
    )
    mode = choice("Mode", Mode.choices)
    origins = lines(
        "Origins that SQS does not name",
        "One a line: the URL of a queue whose messages die into it, or the ARN of what else failed (a function, a "
        "subscription, a target of EventBridge). Usually empty: SQS tells.",
    )
    to = text(
        "Letters go to, instead of back",
        'A target that is known, or the URL of a queue; of the origins named above, or else of all. "off": back to '
        "what they died in. Empty: as it is.",
    )
    role_arn = RoleField(required=False, max_length=2_048, label="Role of another account", help_text="Its ARN.")
    ordering_key = SelectorField(label="Ordering key", help_text=f"{_SHAPES} By default none, on FIFO MessageGroupId.")
    sequence = SelectorField(label="Sequence", help_text="By default system:SentTimestamp, on FIFO SequenceNumber.")
    idempotency_key = SelectorField(label="Idempotency key", help_text="By default message-id.")
    missing_key = choice("A letter without its ordering key", MissingKey.choices)
    stale = choice("A letter that turns up too late", StalePolicy.choices)
    parked_head = choice("What a parked letter does to its lane", ParkedHead.choices)
    max_attempts = whole("Attempts")
    backoff_base = number("First rest after a failure, seconds", least=0, most=FORTNIGHT)
    backoff_cap = number("Longest rest, seconds", least=0, most=FORTNIGHT)
    backoff_jitter = choice("How the rest is spread", Jitter.choices)
    open_fields = ExpressionsField(
        required=False, max_length=20_000, label="Open fields of bodies", widget=forms.Textarea(attrs={"rows": 3}),
        help_text="JMESPath, one a line, as in order.id. Everybody who may see letters may see what these find.",
    )  # fmt: skip
    waves = choice("Runs go in waves", _YES_NO)
    wave_success = number("Share of a wave that has to go well", least=0, most=1)
    give_up_after = number(
        "Give up after (s)",
        "Mode automatic: the run pauses, and people are notified, when no message to a target succeeded for so long. "
        "Empty: never.",
        least=1, most=FORTNIGHT,
    )  # fmt: skip
    interval = whole("Polled every so many seconds", "By default 60.", most=FORTNIGHT)
    crontab = CrontabField(
        required=False, max_length=200, label="Or by a crontab", help_text="Minute hour day month weekday."
    )
    at_once = choice("Polled again at once when letters were found", _YES_NO)
    delete_when = choice("Copies are deleted from the dlq", DeleteWhen.choices, empty="as suits the queue")
    custody_limit = whole("Copies held in SQS at the most", least=0, most=120_000)
    quiet_for = number(
        "A fresh lane rests, seconds", "Empty: its origin's visibility timeout.", least=0, most=FORTNIGHT
    )
    receive_ceiling = whole("Parked when received more often than", "Empty: never for that.")
    parking_url = text("Queue that is told of parked letters", "Its URL; empty: none.")
    message_type = SelectorField(shared=True, label="Type", help_text="A selector; empty: letters have none.")
    tenant = SelectorField(shared=True, label="Tenant", help_text="A selector; empty: letters have none.")
    kind = choice(
        "Its origins are consumed by", ((TargetKind.CELERY, "Celery workers"), (TargetKind.SQS, "others")),
        empty="as it is, or others",
    )  # fmt: skip
    strips_eta, strips_expires, resets_retries, renews_id = (
        choice(words, _YES_NO, empty="as it is, or no") for words in _TASKS.values()
    )

    def __init__(self, data: QueryDict | None, row: DeadLetterQueue | None, begin: dict[str, Any]) -> None:
        self.row = row
        stands = _stands(row) if row else _usual(begin)
        super().__init__(data, initial={**stands, "opened": digest(stands)})
        self.stands = digest(stands)
        if row:
            del self.fields["name"], self.fields["url"]

    def clean(self) -> dict[str, Any]:
        """Refused when somebody changed the dlq since its sheet was opened, or a field cannot be empty."""
        given = super().clean() or self.cleaned_data
        if self.row and given.get("opened") != self.stands:
            raise forms.ValidationError(
                f"Somebody else changed {self.row.name} since you opened this page: {_last(self.row)} Open it again."
            )
        if given.get("interval") and given.get("crontab") and {"interval", "crontab"} & set(self.changed_data):
            raise forms.ValidationError({"crontab": "It is polled by an interval or by a crontab. Empty one of them."})
        for name in _ROW:
            emptied = name in self.changed_data and given.get(name) in ("", None)
            if emptied and name not in _MAY_BE_EMPTY:
                self.add_error(name, "It cannot be empty.")
        return given

    def wanted(self) -> Wanted:
        """What was said.

        Raises:
            QueueIsOutOfReach: the queue that letters are to go to could not be asked.
            TargetIsUnclear: what they are to go to is no target, or could be several.
        """
        given = self.cleaned_data
        to = given["to"]
        return Wanted(
            name=self.row.name if self.row else given["name"],
            url=None if self.row else given["url"],
            origins=tuple(given["origins"].split()),
            to=_destination(to) if to not in {"", OFF} else None,
            takes_back=to == OFF,
            dlq=self._of_dlq(),
            target=said(self, (*PACE, *BRAKES)) | self._of_tasks(),
        )

    def _of_dlq(self) -> dict[str, Any]:
        found = said(self, _ROW) | {
            one: self.cleaned_data[one] == "yes" for one in ("waves", "at_once") if one in self.changed_data
        }
        if "open_fields" in self.changed_data:
            found["open_fields"] = self.cleaned_data["open_fields"]
        for one in ("interval", "crontab"):
            if one in self.changed_data:
                found[one] = self.cleaned_data[one] or None
        if found.get("interval") and "crontab" in found:
            del found["crontab"]
        if found.get("crontab") and "interval" in found:
            del found["interval"]
        return found

    def _of_tasks(self) -> dict[str, Any]:
        found: dict[str, Any] = {"kind": self.cleaned_data["kind"]} if self.cleaned_data["kind"] else {}
        return found | {one: self.cleaned_data[one] == "yes" for one in _TASKS if self.cleaned_data[one]}


def page(request: HttpRequest, dlq: int | None = None) -> HttpResponse:
    """The sheet of a new dlq, or of one that was added."""
    row = DeadLetterQueue.objects.select_related("interval", "crontab").filter(pk=dlq).first() if dlq else None
    if dlq and row is None:
        raise Http404
    there = reverse("admin:reprocessing_deadletterqueue_changelist")
    asked = Asked(
        permission=CHANGE if row else ADD,
        title=f"Change {row.name}" if row else "Add a dlq",
        intro=(
            "Its queues are looked at first: nothing is received, sent or written by that."
            if row
            else "Its queues are looked at first: nothing is received, sent or written by that. Adding one never "
            "redrives it. What is left empty is chosen by what its queues say."
        ),
        button="Change it" if row else "Add it",
        back=reverse("admin:reprocessing_deadletterqueue_change", args=[row.pk]) if row else there,
        about=row.name if row else "Dead-letter queues",
        make=lambda data: DlqSheet(data, row, {one: request.GET[one] for one in ("name", "url") if one in request.GET}),
        look=_look,
        write=_write,
    )
    return examined_form.page(request, asked)


def _look(form: DlqSheet) -> Look:
    found = examine.dlq(form.wanted(), conf.current())
    sight = found.sight
    return Look(
        payload=found,
        changes=registration.differences(found.proposal),
        findings=found.findings,
        passed=found.passed,
        new=sight.row is None,
        facts=(
            ("Queue", sight.dlq.facts.arn),
            ("Messages", f"about {sight.depth.visible:,} visible, {sight.depth.in_flight:,} in flight"),
            ("They died in", ", ".join(seen.address.name for seen in sight.origins.values()) or "nothing known"),
        ),
    )


def _write(look: Look, by: str, reason: str) -> Done:
    found: Examination = look.payload
    name = found.proposal.name
    registration.register(found.proposal, by=by, reason=reason, seen=look.changes)
    row = DeadLetterQueue.objects.get(name=name)
    capture_lease.note_depth(row.pk, visible=found.sight.depth.visible, in_flight=found.sight.depth.in_flight)
    told = f"{name} is {'added' if look.new else 'changed'}."
    if any(one.field == "mode" for one in look.changes):
        nothing = f"Nothing of it is redriven {'yet' if look.new else 'by itself any more'}: plan a run."
        told = f"{told} {automatic_redrive.outlook(name, by_hand=nothing)}"
    return Done(reverse("admin:reprocessing_deadletterqueue_change", args=[row.pk]), told)


def _destination(named: str) -> Target:
    try:
        return examine.known(named) or examine.queue(named)
    except QueueIsOutOfReach as error:
        raise TargetIsUnclear(
            f"{named} is not known as a target, and cannot be reached as a queue ({error}) Add an endpoint, a "
            "function, a topic or a bus as a target first."
        ) from error


def _usual(begin: dict[str, Any]) -> dict[str, Any]:
    """What a new dlq begins with."""
    new = DeadLetterQueue()
    plain = (
        "mode", "missing_key", "stale", "parked_head", "max_attempts", "backoff_base", "backoff_cap", "backoff_jitter",
        "wave_success", "give_up_after",
    )  # fmt: skip
    return {
        **{one: getattr(new, one) for one in plain},
        "waves": "yes", "at_once": "no", "custody_limit": conf.current().custody_limit, **begin,
    }  # fmt: skip


def _stands(row: DeadLetterQueue) -> dict[str, Any]:
    """How a dlq stands, by the names of the sheet's fields."""
    found = {one: getattr(row, one) for one in _ROW}
    every = row.interval and int(registration.seconds(row.interval))
    cron = row.crontab
    return {
        **found,
        **{one: "yes" if found[one] else "no" for one in ("waves", "at_once")},
        "open_fields": "\n".join(row.open_fields),
        "interval": every,
        "crontab": cron and f"{cron.minute} {cron.hour} {cron.day_of_month} {cron.month_of_year} {cron.day_of_week}",
    }


def _last(row: DeadLetterQueue) -> str:
    """Who added it or changed it last. Rules and groups of it have reviews of their own, also rules that are gone."""
    meant = row.reviews.filter(act__in=(Act.ADDED, Act.CHANGED), letter=None, run=None, group=None)
    last = meant.exclude(before__has_any_keys=["rule", "native_redrive"]).order_by("-pk").first()
    return f'{last.by} ("{last.reason}").' if last else "nobody knows who."
