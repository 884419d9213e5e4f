"""Examine a target before it is added or changed: find its kind, propose its settings, and find problems."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from reprocessing.conf import Conf
from reprocessing.domain.errors import InvalidTarget, QueueUnreachable
from reprocessing.domain.message import arn as arns
from reprocessing.domain.message.arn import ResourceKind, resource_name
from reprocessing.domain.safety import url_policy
from reprocessing.domain.safety.url_policy import AllowList, Endpoint, UrlDenied
from reprocessing.domain.targets.target_kind import QUEUE_KINDS, SYNCHRONOUS, TargetKind
from reprocessing.gateways.aws_services.sns_subscribers import count_receivers
from reprocessing.gateways.sqs import QueueAddress, is_of_sqs, locate
from reprocessing.models import DeadLetterQueue, Target
from reprocessing.models.target import Advance, Proof
from reprocessing.pipeline.dlqs.examine.default_targets import RATE, default_fields, kind_of
from reprocessing.pipeline.dlqs.examine.findings import Finding, Severity, note, refuse, reporters, warn
from reprocessing.pipeline.dlqs.examine.queue_attributes import DescribedQueue, describe_queue

_PLURAL = {
    TargetKind.SQS: "queues",
    TargetKind.CELERY: "queues",
    TargetKind.HTTP: "endpoints",
    TargetKind.LAMBDA: "functions",
    TargetKind.TOPIC: "topics",
    TargetKind.BUS: "buses",
}
_KINDS = "Targets are queues, functions, topics, buses and HTTP endpoints."
_PUBLISHED = (TargetKind.TOPIC, TargetKind.BUS)
#: By the field of a target's row: the option of add_target that sets it, and the kinds of targets that accept it.
_FOR = {
    "timeout": ("--timeout", SYNCHRONOUS),
    "answers": ("--answers", (TargetKind.HTTP,)),
    "content_type": ("--content-type", (TargetKind.HTTP,)),
    "secret": ("--secret", (TargetKind.HTTP,)),
    "confirmed_fanout": ("--refire", _PUBLISHED),
    "region": ("--region", (*SYNCHRONOUS, *_PUBLISHED)),
    "role_arn": ("--role", tuple(kind for kind in TargetKind if kind is not TargetKind.HTTP)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetCase:
    """A target, and the findings about it.

    `row`: the stored target; None: the target is new. `fields`: the values that would be stored.
    """

    arn: str
    kind: TargetKind
    row: Target | None
    fields: Mapping[str, Any]
    findings: tuple[Finding, ...] = ()

    @property
    def is_refused(self) -> bool:
        """Return whether a finding forbids adding the target. Its problem must be solved first."""
        return any(finding.severity is Severity.REFUSE for finding in self.findings)

    def value(self, field: str) -> Any:  # noqa: ANN401  of the row's own type
        """Return the value that a field of the target will have after the values in `fields` are stored."""
        return self.fields.get(field, getattr(self.row or Target(), field))


def target(text: str, said: Mapping[str, Any], conf: Conf) -> TargetCase:
    """Examine a target; return the target with the findings about it. Nothing is sent or written.

    Args:
        text: a URL, an ARN, or the name of a stored target.
        said: the values that a person gave, by the names of fields of the row and its breaker.
        conf: the settings, with the allowed hosts and the secrets.

    Raises:
        InvalidTarget: nothing can be sent there, or several targets have this name.
        QueueUnreachable: it is a queue, and SQS did not answer.
    """
    row = find_target(text)
    if row is not None:
        case = TargetCase(arn=row.arn, kind=TargetKind(row.kind), row=row, fields=said)
    else:
        kind, arn, fields = _new(text, said)
        case = TargetCase(arn=arn, kind=kind, row=None, fields={**fields, **said})
    found = [*_fitting(case, said), *_endpoint(case, conf), *_proof(case), *_published(case), *_watched(case)]
    return TargetCase(arn=case.arn, kind=case.kind, row=row, fields=case.fields, findings=tuple(found))


def find_target(text: str) -> Target | None:
    """Return the stored target with this ARN, URL or name; None if there is none.

    Raises:
        InvalidTarget: several targets have this name.
    """
    arn = arns.read(text)
    exact = Target.objects.filter(Q(arn=arn.text if arn else text) | Q(url=text)).exclude(arn="").first()
    if exact is not None or arn is not None or "://" in text:
        return exact
    found = [row for row in Target.objects.filter(arn__endswith=text).order_by("arn") if str(row) == text]
    if len(found) > 1:
        raise InvalidTarget(f"Several targets are named {text}. Give the ARN: {', '.join(row.arn for row in found)}.")
    return found[0] if found else None


def queue_target(text: str) -> Target:
    """Return a new target, not stored yet, for the queue with this URL or ARN. Its attributes are read from SQS.

    Raises:
        InvalidTarget: the text is neither a URL nor the ARN of a queue.
        QueueUnreachable: SQS did not answer.
    """
    arn = arns.read(text)
    if arn is None and "://" not in text:
        raise InvalidTarget(unknown_target(text, _names()))
    if arn is not None and arn.named is not ResourceKind.QUEUE:
        if kind_of(arn.named) is None:
            raise InvalidTarget(f"{text} is {arn.named.value}, and no target by itself. {_KINDS}")
        raise InvalidTarget(
            f"{text} is {arn.named.value} that is not known yet. Add it first: manage.py add_target {text} --confirm"
        )
    _, found, fields = _queue(describe_queue(locate(arn.text) if arn else QueueAddress.of(text)))
    return Target(arn=found, **fields)


def unknown_target(text: str, known: Iterable[str]) -> str:
    """Return a sentence for people: no target has this name, but targets with other names exist.

    `known`: the names of the targets that exist.
    """
    return (
        f'No target is named "{text}". Give the URL of an endpoint or of a queue, or the ARN of a function, a queue, a '
        f"topic or a bus; or the name of a known target: {', '.join(sorted(known)) or 'none'}."
    )


def _names() -> list[str]:
    return [str(row) for row in Target.objects.all()]


def _new(text: str, said: Mapping[str, Any]) -> tuple[TargetKind, str, dict[str, Any]]:
    arn, role = arns.read(text), str(said.get("role_arn", ""))
    if arn is None and "://" in text:
        if is_of_sqs(text):
            return _queue(describe_queue(QueueAddress.of(text, role)))
        return TargetKind.HTTP, text, default_fields(TargetKind.HTTP, text)
    if arn is None:
        raise InvalidTarget(unknown_target(text, _names()))
    if arn.named is ResourceKind.QUEUE:
        return _queue(describe_queue(locate(arn.text, role)))
    kind = kind_of(arn.named)
    if kind is None:
        cure = _KINDS
        if arn.named is ResourceKind.SUBSCRIPTION:
            cure = "Name it as the source of its DLQ: manage.py add_dlq NAME --source ARN --confirm"
        raise InvalidTarget(f"{text} is {arn.named.value}, and no target by itself. {cure}")
    return kind, arn.text, default_fields(kind, arn.text, region=arn.region, fifo=arn.fifo)


def _queue(seen: DescribedQueue) -> tuple[TargetKind, str, dict[str, Any]]:
    facts = seen.facts
    fields = {
        "kind": TargetKind.SQS.value, "url": seen.address.url, "region": seen.address.region, "fifo": facts.fifo,
        "proof": Proof.ACCEPTED.value, "advance": Advance.ACCEPTED.value, "rate": RATE, "burst": None,
        "visibility": int(facts.visibility.total_seconds()), "size_limit": facts.largest,
        "window": seen.window.total_seconds(),
    }  # fmt: skip
    return TargetKind.SQS, facts.arn, fields


def _fitting(case: TargetCase, said: Mapping[str, Any]) -> Iterator[Finding]:
    for field, (option, kinds) in _FOR.items():
        if field in said and case.kind not in kinds:
            fitting = " and ".join(dict.fromkeys(_PLURAL[kind] for kind in kinds))
            what = f"{option} means nothing for {_PLURAL[case.kind]}: it is for {fitting}."
            yield refuse(what, f"Leave out {option}.")
    named = arns.read(case.arn)
    if named is not None and "region" in said and said["region"] != named.region:
        yield refuse(f"{case.arn} is in {named.region or 'no region'}, not in {said['region']}.", "Leave out --region.")
    if case.value("rate") is None:
        yield warn(f"Nothing limits the rate at which {resource_name(case.arn)} gets messages.", "Set --rate R.")


def _endpoint(case: TargetCase, conf: Conf) -> Iterator[Finding]:
    """Yield findings about an HTTP endpoint: it must be allowed, should use TLS, and its secret must exist."""
    if case.kind is not TargetKind.HTTP:
        return
    found = url_policy.read_url(case.arn, conf.outbound_hosts)
    if isinstance(found, UrlDenied):
        yield refuse(
            f"Messages may not be sent there: {found.why}.", found.cure or "Correct the URL: https://HOST/PATH."
        )
        return
    plain = f"{found.scheme}://{found.authority}{found.path}"
    if case.row is None and plain != case.arn:
        yield refuse(
            "Another spelling would be a second target, with its own rate limit and circuit breaker.", f"Write {plain}"
        )
    if found.scheme == "http":
        yield _plain(found, conf.outbound_hosts)
    secret = case.value("secret")
    if secret and secret not in conf.secrets:
        there_are = f"There are: {', '.join(sorted(conf.secrets))}." if conf.secrets else "There is none yet."
        yield refuse(
            f'No secret is named "{secret}". {there_are}',
            f"Put {secret}=whsec_… into REDRIVE_SECRETS of the workers and of this process, or set --secret off.",
        )
    elif not secret:
        yield note("Messages are not signed, so the endpoint cannot recognise forged messages.", "Set --secret NAME.")


def _plain(found: Endpoint, allowed: AllowList) -> Finding:
    """Return a warning about an HTTP endpoint without TLS.

    Messages are sent to it only if REDRIVE_OUTBOUND_HOSTS allows the network of its IP address.
    """
    said = "Messages go there in plain text, and nothing proves who answers"
    if not isinstance(found.host, str):
        entry = allowed.entry(found.host, found.port)
        return warn(f"{said}. It is allowed: REDRIVE_OUTBOUND_HOSTS lists {entry}.", "Better is an https:// address.")
    return warn(
        f"{said}: REDRIVE_OUTBOUND_HOSTS lists the name {found.host}; messages are sent only if its address "
        "is in a listed network too.",
        "Give it an https:// address, or list the network as well, as in 10.1.0.0/16.",
    )


def _proof(case: TargetCase) -> Iterator[Finding]:
    proof = case.value("proof")
    if proof == Proof.ABSENCE and (case.row is None or case.row.watched_by is None):
        yield refuse(
            "The outcome absence cannot be proved here: "
            + (
                "no watched DLQ gets its failed messages."
                if case.kind in QUEUE_KINDS
                else "nothing comes back from there."
            ),
            "Set --outcome accepted, or set --outcome acknowledged if its consumer reports outcomes.",
        )
    if proof == Proof.ACKNOWLEDGED and not case.value("window"):
        yield refuse(
            "Its consumer must report the outcome of each message, but no time limit for it is set.",
            "Set --window SECONDS.",
        )
    if proof == Proof.ACKNOWLEDGED:
        yield from reporters(case.arn, resource_name(case.arn))


def _published(case: TargetCase) -> Iterator[Finding]:
    """Yield findings about a topic or bus as target.

    All its receivers get each message again. A person must have agreed to their number (--refire); else, refuse the
    target.
    """
    if case.kind not in _PUBLISHED:
        return
    what = "subscribers" if case.kind is TargetKind.TOPIC else "targets of its rules"
    agreed, others = case.value("confirmed_fanout"), _others(case)
    told = others if isinstance(others, str) else f"{others:,} besides the one that failed."
    if agreed is None or (isinstance(others, int) and agreed < others):
        yield refuse(
            f"A message that is published again goes to all {what}, not only to the one that failed: {told}",
            f"Agree to it: --refire {others if isinstance(others, int) else 'N'}. To reach only the receiver "
            "that failed, name it as the source: manage.py add_dlq NAME --source ARN --confirm",
        )
        return
    yield warn(f"Each message goes again to {agreed:,} {what} that had it already.")
    if isinstance(others, str):
        yield warn(f"Whether there are more is unknown: {others}")


def _others(case: TargetCase) -> int | str:
    """Return how many receivers of a topic or bus would get a message again, without the one that failed.

    If AWS does not tell the number, return a text that says why.
    """
    try:
        return max(count_receivers(case.arn, role=case.value("role_arn")) - 1, 0)
    except QueueUnreachable as error:
        return str(error)


def _watched(case: TargetCase) -> Iterator[Finding]:
    dlq = DeadLetterQueue.objects.filter(arn=case.arn).first()
    if dlq is not None:
        yield refuse(
            f"This queue is watched, as {dlq.name}: messages sent there would be captured as failed.",
            "Name a queue that is not watched.",
        )
