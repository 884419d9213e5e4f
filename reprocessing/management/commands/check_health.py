"""`manage.py check_health`: what must be well before letters go back, how it is now, and who asks what of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db.models import Q

from reprocessing import conf
from reprocessing.conf import Conf
from reprocessing.domain.safety import url_policy
from reprocessing.domain.safety.health_check import Finding, Healthy, Unhealthy, Unknown
from reprocessing.domain.safety.url_policy import Denied
from reprocessing.management.console import (
    Console,
    add_confirm,
    add_json,
    add_name,
    find,
    number,
    whoever_is_here,
    whole,
    words,
)
from reprocessing.models import DeadLetterQueue, Target
from reprocessing.models.safety import CheckKind
from reprocessing.models.target import FORTNIGHT, QUEUES
from reprocessing.pipeline.safety import run_health_checks
from reprocessing.store.ordering import lanes
from reprocessing.store.safety import health_checks
from reprocessing.store.safety.health_checks import Check, Question, Told

_OF_QUEUES = (CheckKind.DEPTH, CheckKind.AGE)
_DRY = "NOT CHANGED: this was a dry run. With --confirm and --reason"


@dataclass(frozen=True, slots=True)
class Change:
    """What became of what was asked for. In a dry run: what a new check would find, or which one would go."""

    added: int | None = None
    removed: int | None = None
    trial: Finding | None = None
    would_remove: int | None = None


class Command(Console):
    """Performs and shows the health checks of a dlq's targets; adds one, or removes one."""

    help = (
        "Performs the health checks of the targets of a dlq, once and now, and shows what they find. While any check "
        "of a target is not healthy, or nobody has looked for 30 seconds, nothing is sent to that target. With --http, "
        "--alarm, --max-depth or --max-age it adds a check, with --remove it takes one away; both need --confirm."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_name(parser)
        parser.add_argument("--target", type=words, metavar="QUEUE", help="one of its targets: a queue's name, or ARN")
        change = parser.add_mutually_exclusive_group()
        change.add_argument(
            "--http", type=words, metavar="URL", help="this URL answers; its host is in REDRIVE_OUTBOUND_HOSTS"
        )
        change.add_argument("--alarm", type=words, metavar="NAME", help="this CloudWatch alarm is in OK")
        change.add_argument("--max-depth", type=whole(0), metavar="N", help="the target holds at most N messages")
        change.add_argument(
            "--max-age", type=number(0, FORTNIGHT), metavar="S", help="its oldest message is at most S seconds old"
        )
        change.add_argument("--remove", type=whole(1), metavar="ID", help="take away the check of this id")
        parser.add_argument("--status", type=whole(200, 599), metavar="N", help="with --http: the one that is well")
        parser.add_argument(
            "--by", default=whoever_is_here(), type=words, metavar="WHO", help="who does it (%(default)s)"
        )
        parser.add_argument("--reason", type=words, metavar="WHY", help="why; a change needs one, and it is kept")
        add_confirm(parser)
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        view = conf.current()
        dlq = find(options["name"])
        targets = chosen(dlq, options["target"])
        change = changed(targets, options, view)
        run_health_checks.targets(conf=view, only=[one.pk for one in targets])
        found = health_checks.told([one.pk for one in targets])
        if options["json"]:
            self.report(_in_json(dlq, targets, found, change))
        else:
            self.say("\n".join(screen(targets, found, change)))


def chosen(dlq: DeadLetterQueue, name: str | None) -> list[Target]:
    """The targets that are meant: all that the dlq's letters may go to, or the named one of them.

    Raises:
        CommandError: there is none.
    """
    by_rule = Q(rules__dlq=dlq) | Q(rules__isnull=False, rules__dlq=None)
    found = list(Target.objects.filter(Q(origins__dlq=dlq) | by_rule).distinct().order_by("pk"))
    if not found:
        raise CommandError(
            f"{dlq.name} has no target yet. Name its origin: manage.py add_dlq {dlq.name} --origin ARN --confirm"
        )
    named = [one for one in found if name in {None, one.arn, str(one)}]
    if not named:
        raise CommandError(f'{dlq.name} has no target named "{name}". It has: {", ".join(map(str, found))}.')
    return named


def changed(targets: Sequence[Target], options: dict[str, Any], view: Conf) -> Change:
    """Do what was asked for, or try it.

    Raises:
        CommandError: it cannot be done; nothing was changed.
    """
    question = asked(options, view)
    if options["confirm"] and (question or options["remove"]) and not options["reason"]:
        raise CommandError("Nothing was changed: say why, with --reason.")
    if options["remove"]:
        return _removed(targets, options)
    if question is None:
        return Change()
    if len(targets) > 1:
        raise CommandError(f"Say which target is meant, with --target: {', '.join(map(str, targets))}.")
    if question.kind in _OF_QUEUES and targets[0].kind not in QUEUES:
        raise CommandError(f"{targets[0]} is no queue, so it holds no messages. Say --http URL, or --alarm NAME.")
    if not options["confirm"]:
        return Change(trial=trial(targets[0], question, view))
    return Change(added=health_checks.add(targets[0].pk, question, by=options["by"], reason=options["reason"]))


def asked(options: dict[str, Any], view: Conf) -> Question | None:
    """What is to be asked of a target from now on, if anything.

    Raises:
        CommandError: it could never be well.
    """
    if options["status"] is not None and not options["http"]:
        raise CommandError("--status is for --http.")
    if options["http"]:
        return _url(options["http"], options["status"], view)
    if options["alarm"]:
        if options["alarm"].startswith("arn:"):
            raise CommandError("Name the alarm, not its ARN; it is looked for in its target's region.")
        return Question(CheckKind.ALARM, options["alarm"])
    if options["max_depth"] is not None:
        return Question(CheckKind.DEPTH, ceiling=options["max_depth"])
    if options["max_age"] is not None:
        return Question(CheckKind.AGE, ceiling=options["max_age"])
    return None


def trial(target: Target, question: Question, view: Conf) -> Finding:
    """What the target would be found to be; nothing is written down."""
    one = Check(
        check_id=0, target_id=target.pk, kind=question.kind.value, subject=question.subject, ceiling=question.ceiling,
        expected_status=question.expected_status, url=target.url, region=target.region, role_arn=target.role_arn,
        began=lanes.clock(),
    )  # fmt: skip
    ((_, found),) = run_health_checks.look([one], conf=view)
    return found


def screen(targets: Sequence[Target], found: Sequence[Told], change: Change) -> Iterable[str]:
    """All of it, for people."""
    if change.trial is not None:
        yield f"{_DRY} the check is added. Now it finds: {_in_words(change.trial)}"
    elif change.would_remove:
        yield f"{_DRY} check {change.would_remove} is removed."
    elif change.added:
        yield f"Check {change.added} is added."
    elif change.removed:
        yield f"Check {change.removed} is removed."
    for target in targets:
        yield from _of_target(target, [one for one in found if one.target_id == target.pk])


def _of_target(target: Target, found: Sequence[Told]) -> Iterable[str]:
    shut = [one for one in found if not one.lets_go]
    if not found:
        yield f"{target}: nothing is asked of it; letters go there whatever its health."
    elif shut:
        yield f"{target}: NOTHING IS SENT THERE until {'this is' if len(found) == 1 else 'all of this is'} well:"
    else:
        yield f"{target}: well, so letters may go there:"
    for one in found:
        yield f"  {one.check_id}  {_question(one)}: {one.verdict}{_since(one)}"
        if one.detail:
            yield f"      {one.detail}"


def _question(one: Told) -> str:
    match CheckKind(one.kind):
        case CheckKind.HTTP:
            return f"{one.subject} answers {one.expected_status or '200 to 299'}"
        case CheckKind.ALARM:
            return f"alarm {one.subject} is in OK"
        case CheckKind.DEPTH:
            return f"holds at most {one.ceiling:,.15g} messages"
        case CheckKind.AGE:
            return f"oldest message at most {one.ceiling:,.15g} s old"
        case CheckKind.POLICY:
            return "has a redrive policy, which Celery workers need"


def _since(one: Told) -> str:
    if one.age is None:
        return ", nobody has looked yet"
    stale = "" if one.counts else f", too long ago: after {one.max_age:g} s it counts no more"
    return f", seen {max(one.age, 0.0):.1f} s ago{stale}"


def _in_words(found: Finding) -> str:
    match found:
        case Healthy(detail):
            return f"healthy: {detail}"
        case Unhealthy(why):
            return f"unhealthy: {why}"
        case Unknown(why):
            return f"unknown, which lets nothing go either: {why}"


def _in_json(dlq: DeadLetterQueue, targets: Sequence[Target], found: Sequence[Told], change: Change) -> dict[str, Any]:
    tried = None if change.trial is None else _finding_in_json(change.trial)
    dry = change.trial is not None or change.would_remove is not None
    rows = {one.pk: [told for told in found if told.target_id == one.pk] for one in targets}
    return {
        "dlq": dlq.name,
        "dry_run": dry,
        "added": change.added,
        "removed": change.removed,
        "trial": tried,
        "targets": [
            {
                "target": one.arn,
                "lets_go": all(told.lets_go for told in rows[one.pk]),
                "checks": [asdict(told) for told in rows[one.pk]],
            }
            for one in targets
        ],
    }


def _finding_in_json(found: Finding) -> dict[str, str]:
    match found:
        case Healthy(detail):
            return {"verdict": "healthy", "detail": detail}
        case Unhealthy(why):
            return {"verdict": "unhealthy", "detail": why}
        case Unknown(why):
            return {"verdict": "unknown", "detail": why}


def _url(url: str, status: int | None, view: Conf) -> Question:
    read = url_policy.read(url, view.outbound_hosts)
    if isinstance(read, Denied):
        raise CommandError(f"Nothing was changed: {url[:100]!a} may not be asked: {read.why}. {read.cure}".rstrip())
    if status is not None and 300 <= status < 400:  # noqa: PLR2004  redirects
        raise CommandError(f"{status} is a redirect, and none is followed: give the URL it leads to.")
    return Question(CheckKind.HTTP, url, expected_status=status)


def _removed(targets: Sequence[Target], options: dict[str, Any]) -> Change:
    ids = [one.pk for one in targets]
    if options["remove"] not in {one.check_id for one in health_checks.told(ids)}:
        raise CommandError(f"Nothing was changed: these targets have no check {options['remove']}. Without --remove "
                           "all of them are listed, with their ids.")  # fmt: skip
    if not options["confirm"]:
        return Change(would_remove=options["remove"])
    health_checks.remove(options["remove"], ids, by=options["by"], reason=options["reason"])
    return Change(removed=options["remove"])
