"""Examine the DLQs and targets that a configuration file adds or changes, as add_dlq and add_target do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from reprocessing.conf import Conf
from reprocessing.domain.configuration.changes import Action, ObjectChange
from reprocessing.domain.configuration.document import Problem
from reprocessing.domain.configuration.keys import KEYS, POLICY_FIELDS, Kind, Settings, State
from reprocessing.domain.errors import RedriveError
from reprocessing.domain.message.arn import ResourceKind, read
from reprocessing.models import Target
from reprocessing.pipeline.configuration.desired import ITSELF
from reprocessing.pipeline.dlqs import examine
from reprocessing.pipeline.dlqs.examine import Examination, Finding, Severity, TargetCase, Wanted
from reprocessing.store.targets.targets import BREAKER_FIELDS, find_targets

#: A function that is called with the number of DLQs examined so far, and the number of all DLQs to examine.
ReportProgress: TypeAlias = Callable[[int, int], object]
#: If one of these settings of a DLQ changes, AWS is asked about its queues. Other settings do not depend on queues.
QUEUE_FIELDS: Final = frozenset(
    {"mode", "ordering_key", "sequence", "idempotency_key", "missing_key", "delete_when", "parking_url", "role_arn",
     "sources", "default_source"}
)  # fmt: skip
_CELERY: Final = frozenset({"kind", "strips_eta", "strips_expires", "resets_retries", "renews_id"})
#: Fields of a target's settings that the examination of a target leaves out.
_NOT_EXAMINED: Final = frozenset({"health_checks"})


@dataclass(frozen=True, slots=True)
class Examined:
    """The results of all examinations.

    Attributes:
        dlqs: the results about DLQs, by name.
        targets: the results about targets, by ARN.
        rule_targets: queues that are targets of rules only, by ARN.
        findings: warnings about an object, by its kind and name.
        problems: what must be corrected in the file.
    """

    dlqs: dict[str, Examination] = field(default_factory=dict)
    targets: dict[str, TargetCase] = field(default_factory=dict)
    rule_targets: dict[str, Target] = field(default_factory=dict)
    findings: dict[tuple[Kind, str], list[Finding]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class States:
    """Settings of all objects: in the file (`given`), stored (`now`), and after the apply (`desired`)."""

    given: State
    now: State
    desired: State


def examine_changes(changes: Sequence[ObjectChange], states: States, conf: Conf, progress: ReportProgress) -> Examined:
    """Examine the DLQs, targets and rules that change; return the results. Errors of AWS are returned as problems.

    SQS is asked only about new DLQs, and about DLQs with a changed setting that depends on queues. `progress`: called
    after each DLQ.
    """
    work = _Examiner(states, conf, {(change.kind, change.name): change for change in changes})
    targets = [change.name for change in changes if change.kind is Kind.TARGET and change.action is not Action.REMOVE]
    for arn in targets:
        if not work.is_new_queue(arn):
            work.target(arn)
    names = list(work.dlqs())
    for number, name in enumerate(names, 1):
        work.dlq(name)
        progress(number, len(names))
    for arn in targets:
        if work.is_new_queue(arn) and arn not in work.written_with_dlqs():
            work.target(arn)
    for change in changes:
        if change.kind is Kind.RULE and change.action is not Action.REMOVE:
            work.rule(change.name)
    return work.found


class _Examiner:
    def __init__(self, states: States, conf: Conf, changes: dict[tuple[Kind, str], ObjectChange]) -> None:
        self.given, self.now, self.desired = states.given, states.now, states.desired
        self.conf, self.changes = conf, changes
        self.found = Examined()
        self._rows = find_targets(self.now[Kind.TARGET])
        self._targets = {arn: self._changed_fields(arn) for arn in self.given.get(Kind.TARGET, {})}

    def is_new_queue(self, arn: str) -> bool:
        """Return whether a target is a queue that is not stored yet.

        If it belongs to a DLQ, such a target is examined and stored together with the DLQ.
        """
        named = read(arn)
        return arn not in self._rows and named is not None and named.named is ResourceKind.QUEUE

    def written_with_dlqs(self) -> set[str]:
        """Return the ARNs of the targets that are stored together with the examined DLQs."""
        return {arn for found in self.found.dlqs.values() for arn in found.proposal.targets}

    def target(self, arn: str) -> None:
        """Examine one target, and add the result and its problems to `found`."""
        try:
            case = examine.target(arn, self._changed_fields(arn), self.conf)
        except RedriveError as error:
            self._refuse((Kind.TARGET, arn), str(error))
            return
        if case.arn != arn:
            self._refuse((Kind.TARGET, arn), f"Name the target by its ARN: {case.arn}")
        self._add_findings(Kind.TARGET, arn, case.findings)
        self.found.targets[arn] = case

    def _changed_fields(self, arn: str) -> Settings:
        """Return the fields of a target that the apply sets or changes, except its health checks."""
        settings, before = self.desired[Kind.TARGET].get(arn, {}), self.now[Kind.TARGET].get(arn)
        return {
            name: value
            for name, value in settings.items()
            if name not in _NOT_EXAMINED and (before is None or before[name] != value)
        }

    def dlqs(self) -> Iterator[str]:
        """Yield the names of the DLQs to examine: new DLQs, and DLQs whose changed settings depend on queues."""
        celery = {
            arn
            for (kind, arn), change in self.changes.items()
            if kind is Kind.TARGET and any(KEYS[kind].get(setting.key) in _CELERY for setting in change.fields)
        }
        for name in self.desired[Kind.DLQ]:
            before = self.now[Kind.DLQ].get(name)
            if self._depends_on_queues(name) or (before and not celery.isdisjoint(before["sources"].values())):
                yield name

    def _depends_on_queues(self, name: str) -> bool:
        before, settings = self.now[Kind.DLQ].get(name), self.desired[Kind.DLQ][name]
        if (Kind.DLQ, name) not in self.changes:
            return False
        return before is None or any(before[field] != settings[field] for field in QUEUE_FIELDS)

    def dlq(self, name: str) -> None:
        """Examine one DLQ, and add the result and its problems to `found`."""
        path = (Kind.DLQ, name)
        try:
            found = examine.dlq(self._wanted(name), self.conf)
        except RedriveError as error:
            self._refuse(path, str(error))
            return
        listed = self.given.get(Kind.DLQ, {}).get(name, {}).get("sources")
        for arn in found.proposal.ways if listed is not None else ():
            if arn not in (listed or ()):
                what = f"Messages of {arn} fail into this DLQ, too. Add it to sources, or leave out sources."
                self._refuse((*path, "sources"), what)
        self._add_findings(*path, found.findings)
        self.found.dlqs[name] = found

    def _wanted(self, name: str) -> Wanted:
        settings, before = self.desired[Kind.DLQ][name], self.now[Kind.DLQ].get(name)
        fields = ("policy", "own_settings", *POLICY_FIELDS)
        changed = [
            field for field in fields if field in settings and (before is None or before[field] != settings[field])
        ]
        known = before["sources"] if before else {}
        ways = {arn: to for arn, to in settings.get("sources", {}).items() if known.get(arn) != to and to != ITSELF}
        return Wanted(
            name=name,
            url=settings["url"],
            sources=tuple(arn for arn in settings.get("sources", {}) if arn not in known),
            dlq={"own_settings": settings["own_settings"], **{field: settings[field] for field in changed}},
            targets=self._targets,
            ways={arn: self._row(arn, to) for arn, to in ways.items()},
            default_source=settings.get("default_source"),
            names_default=False,
        )

    def _row(self, source: str, to: str) -> Target:
        if to == source:
            return Target(arn=to)
        if to in self._rows:
            return self._rows[to]
        if (case := self.found.targets.get(to)) is not None:
            return Target(arn=to, **{name: value for name, value in case.fields.items() if name not in BREAKER_FIELDS})
        return examine.queue_target(to)

    def rule(self, name: str) -> None:
        """Ask SQS about a queue that only a rule has as target. Add a problem if the queue is a watched DLQ."""
        arn = self.desired[Kind.RULE][name]["target"]
        if not arn:
            return
        watched = next((dlq for dlq, found in self.found.dlqs.items() if found.observed.dlq.facts.arn == arn), None)
        if watched:
            what = f"{arn} is watched, as {watched}: messages sent there would be captured as failed."
            self._refuse((Kind.RULE, name, "to"), f"{what} Name a queue that is not watched.")
        if arn in self._rows or arn in self.desired[Kind.TARGET] or arn in self.written_with_dlqs():
            return
        try:
            self.found.rule_targets[arn] = examine.queue_target(arn)
        except RedriveError as error:
            self._refuse((Kind.RULE, name, "to"), str(error))

    def _add_findings(self, kind: Kind, name: str, findings: Sequence[Finding]) -> None:
        for finding in findings:
            if finding.severity is Severity.REFUSE:
                self._refuse((kind, name), f"{finding.what} {finding.cure}".rstrip())
        warnings = [finding for finding in findings if finding.severity is Severity.WARN]
        if warnings:
            self.found.findings[kind, name] = warnings

    def _refuse(self, path: tuple[str, ...], what: str) -> None:
        self.found.problems.append(Problem(path, what))
