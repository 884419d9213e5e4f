"""Check changed settings of a configuration file (backoffs, schedules, rules, sources) without asking AWS."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from reprocessing.domain.configuration.changes import Action, ObjectChange
from reprocessing.domain.configuration.document import Problem
from reprocessing.domain.configuration.keys import Kind, Settings, State
from reprocessing.domain.errors import RedriveError, SourceInUse
from reprocessing.domain.message.arn import read
from reprocessing.domain.search.search_fields import list_problem
from reprocessing.domain.targets.target_kind import QUEUE_KINDS, TargetKind
from reprocessing.models import DeadLetterQueue, RateClass, Rule, Source, Target
from reprocessing.pipeline.dlqs.examine.policies import backoff_problem
from reprocessing.pipeline.dlqs.examine.targets import unknown_target
from reprocessing.store.dlqs import source_queues
from reprocessing.store.notifications import routes
from reprocessing.store.notifications.routes import Route
from reprocessing.store.routing import rule_changes

#: Health checks that are possible only for queues.
_OF_QUEUES = ("max_depth", "max_age")


def problems(changes: Sequence[ObjectChange], given: State, now: State, desired: State) -> Iterator[Problem]:
    """Yield problems of the changed objects that can be found without asking AWS.

    `given`: the settings in the file. `now`: the stored settings. `desired`: the settings after the apply.
    """
    yield from _schedules(given)
    yield from _search_fields(given)
    for change in changes:
        if change.action is Action.REMOVE:
            continue
        settings, before = desired[change.kind][change.name], now[change.kind].get(change.name)
        match change.kind:
            case Kind.TARGET:
                yield from _target(change.name, settings, before)
            case Kind.DLQ:
                yield from _dlq(change.name, settings, before, desired)
            case Kind.RULE:
                yield from _rule(change.name, settings, desired)
            case Kind.NOTIFICATION:
                yield from _route(change.name, settings)
            case Kind.POLICY | Kind.RATE_CLASS | Kind.APPROVAL:
                pass


def _schedules(given: State) -> Iterator[Problem]:
    for kind in (Kind.POLICY, Kind.DLQ):
        for name, settings in given.get(kind, {}).items():
            if settings.get("interval") is not None and settings.get("crontab") is not None:
                yield Problem((kind, name, "crontab"), "every is set, too. Leave out every or crontab.")


def _search_fields(given: State) -> Iterator[Problem]:
    for kind in (Kind.POLICY, Kind.DLQ):
        for name, settings in given.get(kind, {}).items():
            if problem := list_problem(settings.get("search_fields", ())):
                yield Problem((kind, name, "search_fields"), problem)


def _target(arn: str, settings: Settings, before: Settings | None) -> Iterator[Problem]:
    kind = before["kind"] if before else settings.get("kind", "")
    if before and settings["kind"] == TargetKind.CELERY and kind not in QUEUE_KINDS:
        yield Problem(
            (Kind.TARGET, arn, "celery"), "It is no queue, so no Celery workers consume it. Leave out celery."
        )
    for index, check in enumerate(settings.get("health_checks", ())):
        if any(key in check for key in _OF_QUEUES) and (kind not in QUEUE_KINDS if before else "://" in arn):
            path = (Kind.TARGET, arn, "health_checks", str(index))
            yield Problem(path, "The target is not a queue, so it has no messages. Use http or alarm.")


def _dlq(name: str, settings: Settings, before: Settings | None, desired: State) -> Iterator[Problem]:
    if found := backoff_problem(settings.get("backoff_base", 0), settings.get("backoff_cap", float("inf"))):
        place = "backoff_cap" if "backoff_cap" in settings["own_settings"] or not settings["policy"] else "policy"
        yield Problem((Kind.DLQ, name, place), f"{found.what} {found.cure}")
    if before and before["url"] != settings["url"]:
        what = f"The URL of a DLQ cannot be changed: it is {before['url']}. Add the other queue under another name."
        yield Problem((Kind.DLQ, name, "url"), what)
    for arn, to in settings.get("sources", {}).items():
        if to not in desired[Kind.TARGET] and read(to) is None and to != "itself":
            yield Problem((Kind.DLQ, name, "sources", arn), unknown_target(to, desired[Kind.TARGET]))
    for arn in before["sources"] if before else ():
        if arn not in settings["sources"]:
            yield from _removed_source(name, arn)


def _removed_source(name: str, arn: str) -> Iterator[Problem]:
    try:
        source_queues.refuse_if_needed(Source.objects.select_related("dlq").get(dlq__name=name, arn=arn))
    except SourceInUse as error:
        yield Problem((Kind.DLQ, name, "sources"), str(error))


def _rule(name: str, settings: Settings, desired: State) -> Iterator[Problem]:
    arn = settings["target"]
    if arn and arn not in desired[Kind.TARGET] and read(arn) is None:
        yield Problem((Kind.RULE, name, "to"), unknown_target(arn, desired[Kind.TARGET]))
        return
    try:
        rule_changes.check(rule_row(name, settings))
    except RedriveError as error:
        yield Problem((Kind.RULE, name), str(error))


def rule_row(name: str, settings: Settings) -> Rule:
    """Return the rule that these settings describe, without saving it.

    The rule's DLQ, target and rate class may not be stored yet.
    """
    plain = {field: value for field, value in settings.items() if field not in {"dlq", "target", "rate_class"}}
    times = {field: plain[field] and datetime.fromisoformat(plain[field]) for field in ("valid_from", "valid_until")}
    arn = settings["target"]
    return Rule(
        name=name, **{**plain, **times},
        dlq=DeadLetterQueue(name=settings["dlq"]) if settings["dlq"] else None,
        target=(Target.objects.filter(arn=arn).first() or Target(arn=arn)) if arn else None,
        rate_class=RateClass(name=settings["rate_class"]) if settings["rate_class"] else None,
    )  # fmt: skip


def _route(name: str, settings: Settings) -> Iterator[Problem]:
    try:
        routes.check_route(route_of(name, settings), settings["dlqs"])  # `desired_state` has checked the DLQs
    except RedriveError as error:
        yield Problem((Kind.NOTIFICATION, name), str(error))


def route_of(name: str, settings: Settings) -> Route:
    """Return the notification route that these settings describe."""
    return Route(name, routes.read_kinds(settings["kinds"] or ["all"]), tuple(settings["dlqs"]))
