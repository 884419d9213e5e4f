"""The command `manage.py check_health`, which runs, adds or removes health checks of targets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.core.management.base import CommandError, CommandParser

from reprocessing import conf
from reprocessing.conf import Conf
from reprocessing.domain.safety.health_check import HealthResult, HealthUnknown, Healthy, Unhealthy
from reprocessing.domain.targets.target_kind import QUEUE_KINDS
from reprocessing.management.arguments import add_by, add_confirm, add_json, add_name, not_empty, number, whole_number
from reprocessing.management.console import Console, find_dlq
from reprocessing.management.shared.dlq_targets import targets_of
from reprocessing.management.shared.health_question import read_question
from reprocessing.models import DeadLetterQueue, Target
from reprocessing.models.safety import CheckKind
from reprocessing.models.target import MAX_SECONDS
from reprocessing.pipeline.safety import run_health_checks
from reprocessing.store.ordering import lanes
from reprocessing.store.safety import health_checks
from reprocessing.store.safety.health_checks import CheckQuestion, CheckStatus, ClaimedCheck

_OF_QUEUES = (CheckKind.DEPTH, CheckKind.AGE)
_DRY = "NOT CHANGED: this was a dry run. With --confirm and --reason"


@dataclass(frozen=True, slots=True)
class Change:
    """What the command did with a health check, or would do without --confirm. A field that does not apply is None.

    Attributes:
        added: id of the check that was added.
        removed: id of the check that was removed.
        trial: in a dry run, the result of the check that would be added.
        would_remove: in a dry run, id of the check that would be removed.
    """

    added: int | None = None
    removed: int | None = None
    trial: HealthResult | None = None
    would_remove: int | None = None


class Command(Console):
    """Run the health checks of a DLQ's targets; add or remove a check.

    Nothing is sent to a target while one of its checks is not healthy, or the check's last result is older than 30
    seconds. --http, --alarm, --max-depth and --max-age add a check. --remove removes a check. To make such a change,
    give --reason and --confirm.

    Examples:
        check_health orders
        check_health orders --http https://shop.example.com/healthz --reason INC-7 --confirm
    """

    def add_arguments(self, parser: CommandParser) -> None:
        add_name(parser)
        parser.add_argument(
            "--target", type=not_empty, metavar="QUEUE", help="only the checks of the target with this name or ARN"
        )
        change = parser.add_mutually_exclusive_group()
        change.add_argument(
            "--http",
            type=not_empty,
            metavar="URL",
            help="add a check: a GET request to this URL must succeed (see --status); REDRIVE_OUTBOUND_HOSTS must "
            "allow the host",
        )
        change.add_argument(
            "--alarm", type=not_empty, metavar="NAME", help="add a check: this CloudWatch alarm must be OK"
        )
        change.add_argument(
            "--max-depth",
            type=whole_number(0),
            metavar="N",
            help="add a check: the target queue has at most N messages",
        )
        change.add_argument(
            "--max-age", type=number(0, MAX_SECONDS), metavar="SECONDS",
            help="add a check: the oldest message in the target queue is at most SECONDS old",
        )  # fmt: skip
        change.add_argument("--remove", type=whole_number(1), metavar="ID", help="remove the check with this id")
        parser.add_argument(
            "--status",
            type=whole_number(200, 599),
            metavar="N",
            help="with --http: the HTTP status that means healthy (default: 200 to 299)",
        )
        add_by(parser)
        parser.add_argument("--reason", type=not_empty, metavar="WHY", help="reason of a change, for the audit log")
        add_confirm(parser)
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        view = conf.current()
        dlq = find_dlq(options["name"])
        targets = targets_of(dlq, options["target"])
        change = changed(targets, options, view)
        ids = [target.pk for target in targets]
        run_health_checks.run_due(conf=view, only=ids)
        found = health_checks.checks_of(ids)
        if options["json"]:
            self.report(_in_json(dlq, targets, found, change))
        else:
            self.say("\n".join(screen(targets, found, change)))


def changed(targets: Sequence[Target], options: dict[str, Any], view: Conf) -> Change:
    """Add or remove a check of a target as the options say, and return the change. In a dry run, save nothing.

    Raises:
        CommandError: the options are not valid, or a confirmed change has no reason. Nothing was changed.
    """
    question = read_question(options, view)
    if options["confirm"] and (question or options["remove"]) and not options["reason"]:
        raise CommandError("Nothing was changed: a change needs a reason. Add: --reason WHY")
    if options["remove"]:
        return _removed(targets, options)
    if question is None:
        return Change()
    if len(targets) > 1:
        raise CommandError(f"There are several targets. Add --target with one of: {', '.join(map(str, targets))}.")
    if question.kind in _OF_QUEUES and targets[0].kind not in QUEUE_KINDS:
        raise CommandError(f"{targets[0]} is not a queue, so it has no messages. Use --http URL or --alarm NAME.")
    if not options["confirm"]:
        return Change(trial=trial(targets[0], question, view))
    return Change(added=health_checks.add_check(targets[0].pk, question, by=options["by"], reason=options["reason"]))


def trial(target: Target, question: CheckQuestion, view: Conf) -> HealthResult:
    """Run a health check once before it is added, and return its result. Save nothing."""
    check = ClaimedCheck(
        check_id=0, target_id=target.pk, kind=question.kind.value, subject=question.subject, ceiling=question.ceiling,
        expected_status=question.expected_status, url=target.url, region=target.region, role_arn=target.role_arn,
        began=lanes.database_now(),
    )  # fmt: skip
    ((_, found),) = run_health_checks.run_checks([check], conf=view)
    return found


def screen(targets: Sequence[Target], found: Sequence[CheckStatus], change: Change) -> Iterable[str]:
    """Yield the lines to print: the change, then each target with its checks."""
    if change.trial is not None:
        now = "; ".join(_finding_in_json(change.trial).values())
        yield f"{_DRY} the check is added. Its result now: {now}"
    elif change.would_remove:
        yield f"{_DRY} check {change.would_remove} is removed."
    elif change.added:
        yield f"Health check {change.added} is added."
    elif change.removed:
        yield f"Health check {change.removed} is removed."
    for target in targets:
        yield from _of_target(target, [check for check in found if check.target_id == target.pk])


def _of_target(target: Target, found: Sequence[CheckStatus]) -> Iterable[str]:
    if not found:
        yield f"{target}: no health checks; messages are sent there whatever its health."
    elif all(check.is_passing for check in found):
        yield f"{target}: healthy, so messages are sent there:"
    else:
        yield f"{target}: NOTHING IS SENT THERE until all checks are healthy:"
    for check in found:
        yield f"  {check.check_id}  {_question(check)}: {check.verdict}{_since(check)}"
        if check.detail:
            yield f"      {check.detail}"


def _question(check: CheckStatus) -> str:
    match CheckKind(check.kind):
        case CheckKind.HTTP:
            return f"{check.subject} answers {check.expected_status or '200 to 299'}"
        case CheckKind.ALARM:
            return f"alarm {check.subject} is in OK"
        case CheckKind.DEPTH:
            return f"holds at most {check.ceiling:,.15g} messages"
        case CheckKind.AGE:
            return f"oldest message at most {check.ceiling:,.15g} s old"
        case CheckKind.POLICY:
            return "has a redrive policy, which Celery workers need"


def _since(check: CheckStatus) -> str:
    if check.age is None:
        return ", never run"
    stale = "" if check.counts else f", too old: a result counts for {check.max_age:g} s"
    return f", {max(check.age, 0.0):.1f} s ago{stale}"


def _in_json(
    dlq: DeadLetterQueue, targets: Sequence[Target], found: Sequence[CheckStatus], change: Change
) -> dict[str, Any]:
    rows = {target.pk: [check for check in found if check.target_id == target.pk] for target in targets}
    return {
        "dlq": dlq.name,
        "dry_run": change.trial is not None or change.would_remove is not None,
        "added": change.added,
        "removed": change.removed,
        "trial": None if change.trial is None else _finding_in_json(change.trial),
        "targets": [
            {
                "target": target.arn,
                "lets_go": all(check.is_passing for check in rows[target.pk]),
                "checks": [asdict(check) for check in rows[target.pk]],
            }
            for target in targets
        ],
    }


def _finding_in_json(found: HealthResult) -> dict[str, str]:
    match found:
        case Healthy(detail):
            return {"verdict": "healthy", "detail": detail}
        case Unhealthy(why):
            return {"verdict": "unhealthy", "detail": why}
        case HealthUnknown(why):
            return {"verdict": "unknown", "detail": why}


def _removed(targets: Sequence[Target], options: dict[str, Any]) -> Change:
    ids, check = [target.pk for target in targets], options["remove"]
    if check not in {known.check_id for known in health_checks.checks_of(ids)}:
        raise CommandError(f"Nothing was changed: no check has the id {check}. To list all checks, leave out --remove.")
    if not options["confirm"]:
        return Change(would_remove=check)
    health_checks.remove_check(check, ids, by=options["by"], reason=options["reason"])
    return Change(removed=check)
