"""The command `manage.py discover_dlqs`, which finds the DLQs of AWS accounts and regions, and adds them."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser

from reprocessing import conf
from reprocessing.domain.dlqs.discovery import Scope, SourceKind
from reprocessing.domain.dlqs.expiry_risk import Risk
from reprocessing.domain.notifications.text import duration
from reprocessing.gateways.aws.clients import configured_region
from reprocessing.management.console import Console
from reprocessing.management.options import discovery_options
from reprocessing.management.output import discovery_output
from reprocessing.management.output.drain_output import counted
from reprocessing.management.shared.progress import ProgressLog
from reprocessing.models.discovery import DiscoveryScope
from reprocessing.pipeline.dlqs import adopt, discover
from reprocessing.pipeline.dlqs.adopt import AdoptionSettings
from reprocessing.pipeline.dlqs.discover import Progress, ScanResult
from reprocessing.store.dlqs import discovered_queues, discovery_scopes
from reprocessing.store.dlqs.discovered_queues import DiscoveredDlq
from reprocessing.store.ordering.lanes import database_now

#: Seconds until the next try to scan a scope (account and region) that another process scans.
_RETRY: Final = 1.0
_DRY: Final = "This was a dry run. To make the change, add --confirm."


class Command(Console):
    """List every DLQ of AWS accounts and regions; with --adopt, add DLQs that are not registered.

    To find DLQs, reads the redrive policies of queues, and the settings of Lambda functions, SNS subscriptions and
    EventBridge rules. Receives and sends no messages. Without --role, --region, --prefix and --tag, repeats all earlier
    searches. If the command is interrupted, run it again: it continues where it ended.

    Examples:
        discover_dlqs --region eu-west-1 --role arn:aws:iam::111122223333:role/redrive
        discover_dlqs --adopt-new --policy standard --team payments --reason "day one" --confirm
    """

    def add_arguments(self, parser: CommandParser) -> None:
        discovery_options.add_discovery(parser)

    def answer(self, options: dict[str, Any]) -> None:
        scopes = _scopes(options)
        adopts = options["adopt"] or options["adopt_new"]
        if (options["policy"] or options["team"]) and not adopts:
            raise CommandError("--policy and --team are settings of added DLQs. Add: --adopt NAME, or --adopt-new")
        if adopts:
            self._adopt(_named(options["adopt"]) if options["adopt"] else _new(scopes), options)
        elif options["ignore"] or options["unignore"]:
            self._ignore(_named(options["ignore"] or options["unignore"]), options)
        elif options["daily"] is not None:
            self._repeat(scopes, options)
        elif options["forget"]:
            self._forget(scopes, options)
        else:
            self._discover(scopes, options)

    def _discover(self, scopes: Sequence[Scope], options: dict[str, Any]) -> None:
        if not options["stored"]:
            self._scan(scopes)
        rows = discovery_scopes.find_scopes(scopes)
        found = _found(scopes)
        now = database_now()
        risks = sorted(((dlq, dlq.risk(now)) for dlq in found), key=lambda pair: (pair[1].rank, pair[0].arn))
        if options["json"]:
            self.report({
                "dlqs": [discovery_output.as_json(*pair) for pair in risks],
                "scopes": [discovery_output.scope_json(row) for row in rows],
            })  # fmt: skip
        else:
            self._show(risks, rows)
        _raise_if_unlisted(rows)

    def _scan(self, scopes: Sequence[Scope]) -> None:
        """Scan every scope (account and region). If another process scans a scope, wait, and use its results."""
        log, began, dice = ProgressLog(self.stderr), database_now(), random.SystemRandom().random
        left = list(scopes)
        while left:
            busy = []
            for number, scope in enumerate(left, len(scopes) - len(left) + 1):
                scope_id = discovery_scopes.add_scope(scope)
                report = partial(_report, log, scope, number, len(scopes))
                result = discover.scan_scope(scope_id, conf.current(), dice=dice, report=report)
                if result is ScanResult.BUSY and (discovery_scopes.last_scan(scope_id) or began) <= began:
                    busy.append(scope)
            if left := busy:
                log.line_if_due(partial("Waiting: another process scans {}.".format, left[0].words))
                time.sleep(_RETRY)

    def _show(self, found: Sequence[tuple[DiscoveredDlq, Risk]], rows: Sequence[DiscoveryScope]) -> None:
        if found:
            self.table(discovery_output.HEADER, [discovery_output.cells(*pair) for pair in found])
        for dlq, _ in found:
            if dlq.last_error:
                self.say(f"{dlq.name}: not read. {dlq.last_error}")
        new = sum(dlq.status == "new" for dlq, _ in found)
        self.say(f"{counted(len(found), 'DLQ')}, {new:,} new.")
        for line in discovery_output.scope_lines(rows):
            self.say(line)
        if new:
            self.say("To add a DLQ, run: manage.py discover_dlqs --adopt NAME; to add all, --adopt-new")
        if any(row.unread for row in rows):
            self.say("To print the permissions that discovery needs, run: manage.py iam_policy --discover")

    def _adopt(self, queues: Sequence[DiscoveredDlq], options: dict[str, Any]) -> None:
        log, results, refused = ProgressLog(self.stderr), [], 0
        settings = AdoptionSettings(options["policy"] or "", tuple(sorted(set(options["team"] or ()))))
        for number, adoption in enumerate(adopt.examine_adoptions(queues, conf.current(), settings), 1):
            log.line_if_due(partial("Examined {} of {} DLQs.".format, number, len(queues)))
            acted = options["confirm"] and not adoption.error
            if acted:
                adopt.adopt(adoption, by=options["by"], reason=options["reason"])
            refused += bool(adoption.error)
            results.append({
                "queue": adoption.queue.arn, "name": adoption.name, "added": acted, "error": adoption.error,
            })  # fmt: skip
            if not options["json"]:
                self.say("\n".join(discovery_output.adoption_lines(adoption, acted=acted)))
        if options["json"]:
            self.report({"dry_run": not options["confirm"], "dlqs": results})
        elif not options["confirm"]:
            self.say(_DRY)
        if refused:
            raise CommandError(f"{refused:,} of {len(queues):,} DLQs cannot be added: see above.")

    def _ignore(self, queues: Sequence[DiscoveredDlq], options: dict[str, Any]) -> None:
        ignored, arns = bool(options["ignore"]), [queue.arn for queue in queues]
        words = "ignored" if ignored else "no longer ignored"
        if options["confirm"]:
            discovered_queues.set_ignored(arns, ignored=ignored, by=options["by"], reason=options["reason"])
        if options["json"]:
            self.report({"dry_run": not options["confirm"], "ignored": ignored, "queues": arns})
            return
        for arn in arns:
            self.say(f"{arn}: {words if options['confirm'] else f'to be {words}'}.")
        if not options["confirm"]:
            self.say(_DRY)

    def _repeat(self, scopes: Sequence[Scope], options: dict[str, Any]) -> None:
        daily, every = options["daily"], conf.current().discover_every
        if daily and not every:
            raise CommandError(
                "Discoveries are not repeated: REDRIVE_DISCOVER_EVERY is 0. Set it to 86400 for once a day."
            )
        if options["confirm"]:
            discovery_scopes.set_daily(scopes, daily=daily, by=options["by"], reason=options["reason"])
        self._changed(scopes, f"repeated every {duration(every.total_seconds())}" if daily else "not repeated", options)

    def _forget(self, scopes: Sequence[Scope], options: dict[str, Any]) -> None:
        known = [row.scope for row in discovery_scopes.find_scopes(scopes)]
        if unknown := [scope.words for scope in scopes if scope not in known]:
            raise CommandError(
                f"Never scanned: {'; '.join(unknown)}. To list what was scanned, run: manage.py discover_dlqs --stored"
            )
        if options["confirm"]:
            discovery_scopes.forget(scopes, by=options["by"], reason=options["reason"])
        self._changed(scopes, "deleted, with the DLQs that were found there; registered DLQs stay", options)

    def _changed(self, scopes: Sequence[Scope], what: str, options: dict[str, Any]) -> None:
        if options["json"]:
            words = [scope.words for scope in scopes]
            self.report({"dry_run": not options["confirm"], "scopes": words, "change": what})
            return
        for scope in scopes:
            self.say(f"{scope.words}: {'' if options['confirm'] else 'to be '}{what}.")
        if not options["confirm"]:
            self.say(_DRY)


def _scopes(options: dict[str, Any]) -> list[Scope]:
    """Return the accounts and regions that the options name.

    If no option names any, return all accounts and regions that were scanned before. If none were scanned, return the
    configured region of this account.

    Raises:
        CommandError: no region is given or configured.
    """
    tags = dict(options["tag"] or ())
    if not (options["role"] or options["region"] or options["prefix"] or tags) and (
        known := discovery_scopes.all_scopes()
    ):
        return [row.scope for row in known]
    regions = options["region"] or [configured_region() or ""]
    if not regions[0]:
        raise CommandError("No region is configured. Add: --region REGION, or set AWS_DEFAULT_REGION.")
    roles = dict.fromkeys(options["role"] or [""])
    return [Scope(region, role, options["prefix"] or "", tags) for role in roles for region in dict.fromkeys(regions)]


def _found(scopes: Sequence[Scope]) -> list[DiscoveredDlq]:
    """Return the discovered DLQs of these accounts and regions."""
    found = discovered_queues.list_dlqs()
    return [dlq for dlq in found if any(scope.covers(dlq.arn, dlq.tags, dlq.role_arn) for scope in scopes)]


def _new(scopes: Sequence[Scope]) -> list[DiscoveredDlq]:
    """Return the discovered DLQs that are neither registered nor ignored.

    Raises:
        CommandError: there is no such DLQ.
    """
    if found := [dlq for dlq in _found(scopes) if dlq.status == "new"]:
        return found
    raise CommandError("No new DLQ was found. To search AWS, run: manage.py discover_dlqs")


def _named(names: Sequence[str]) -> list[DiscoveredDlq]:
    """Return the discovered DLQs with these names or ARNs.

    Raises:
        CommandError: a name is unknown, or several DLQs have the same name.
    """
    known = discovered_queues.list_dlqs()
    found: dict[str, DiscoveredDlq] = {}
    for name in names:
        matches = [dlq for dlq in known if name in {dlq.arn, dlq.name}]
        if not matches:
            raise CommandError(
                f"No DLQ named {name} was found. To search AWS, run: manage.py discover_dlqs; to list the known DLQs, "
                "run: manage.py discover_dlqs --stored"
            )
        if len(matches) > 1:
            arns = ", ".join(dlq.arn for dlq in matches)
            raise CommandError(f"{len(matches)} DLQs are named {name}. Give an ARN instead: {arns}")
        found[matches[0].arn] = matches[0]
    return list(found.values())


def _report(log: ProgressLog, scope: Scope, number: int, many: int, progress: Progress) -> None:
    queues = f" {progress.done:,} of {progress.listed:,}" if progress.listed else ""
    log.line_if_due(lambda: f"{number} of {many}: {scope.words}: {progress.stage.label}{queues}.")


def _raise_if_unlisted(rows: Sequence[DiscoveryScope]) -> None:
    failed = [row.scope.words for row in rows if any(kind == SourceKind.QUEUE for kind, _ in row.unread)]
    if failed:
        raise CommandError(f"Queues could not be listed: {'; '.join(failed)}. The reason is above.")
