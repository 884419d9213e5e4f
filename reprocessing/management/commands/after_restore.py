"""The command `manage.py after_restore`, which resumes redrive safely after PostgreSQL was restored from a backup."""

from __future__ import annotations

from itertools import chain
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from reprocessing.gateways.redis.tick_watermark import TickWatermark
from reprocessing.management.arguments import add_change_options, add_json, iso_time
from reprocessing.management.command_parser import StrictParser
from reprocessing.management.console import PIECES, Console, find_dlq, format_time
from reprocessing.management.output import restore_output
from reprocessing.management.output.drain_output import counted
from reprocessing.management.shared.progress import Pace, ProgressLog
from reprocessing.models.system import RestoreDecision
from reprocessing.pipeline.aws import follow_redrives
from reprocessing.pipeline.maintenance import detect_restore, reconcile
from reprocessing.store.maintenance import restore_doubts, restore_hold
from reprocessing.store.ordering import lanes

_STEPS = (
    "hold: stop all sends. report: show what is known about messages that were unfinished in the backup. resolve: "
    "decide about these messages. release: let workers send again. To list the options of a step, add --help after it"
)


class Command(Console):
    """Resume safely after PostgreSQL was restored from a backup.

    Messages that were unfinished in the backup may have been sent since. Run "hold" before workers start, to stop all
    sends. Then start workers: they capture, but send nothing. "report" counts the messages that were unfinished in the
    backup, in three classes: finished (no longer in the DLQ, so probably delivered, parked or discarded since),
    unfinished (still in the DLQ), and unknown (no evidence). "resolve" decides for each class: "delivered" counts its
    messages as delivered, "parked" parks them, "replay" sends them. "release" lets workers send again.

    Examples:
        after_restore hold --since 2026-03-01T08:00:00Z --reason INC-7 --confirm
        after_restore report
        after_restore resolve --finished parked --unfinished replay --unknown parked --reason INC-7 --confirm
        after_restore release --reason INC-7 --confirm
    """

    def add_arguments(self, parser: CommandParser) -> None:
        steps = parser.add_subparsers(
            dest="step", required=True, metavar="hold|report|resolve|release", help=_STEPS, parser_class=StrictParser
        )
        begin = steps.add_parser("hold", help="stop all sends until after_restore release")
        begin.add_argument(
            "--since", type=iso_time, required=True, metavar="TIME", help="time of the backup (ISO 8601)"
        )
        begin.add_argument(
            "--again",
            action="store_true",
            help="use this if PostgreSQL was restored again after the last hold; deletes the decisions made since then",
        )
        reporting = steps.add_parser(
            "report", help="show how many messages were unfinished in the backup, and what is known about them"
        )
        add_json(reporting)
        deciding = steps.add_parser(
            "resolve", help="decide what to do with finished, unfinished and unknown messages (see report)"
        )
        deciding.add_argument(
            "name", nargs="?", metavar="NAME", help="decide only about messages of this DLQ (default: of all DLQs)"
        )
        for kind, may_be in reconcile.ALLOWED_DECISIONS.items():
            deciding.add_argument(
                f"--{kind}",
                choices=[one.value for one in may_be],
                help=f"decision about the messages that after_restore report lists as {kind}",
            )
        release = steps.add_parser("release", help="resume sending; refused while messages are undecided (see report)")
        release.add_argument(
            "--early",
            action="store_true",
            help="resume before a capture has emptied each DLQ; messages may be sent twice",
        )
        for one in (begin, deciding, release):
            add_change_options(one)

    def answer(self, options: dict[str, Any]) -> None:
        match options["step"]:
            case "hold":
                self.hold(options)
            case "report":
                self.tell(options)
            case "resolve":
                self.resolve(options)
            case _:
                self.release(options)

    def hold(self, options: dict[str, Any]) -> None:
        since = options["since"]
        if since > lanes.database_now():
            raise CommandError(
                f"Nothing was done: --since {format_time(since)} is in the future. Give the time of the backup."
            )
        found, sent = restore_hold.current_hold(), restore_hold.count_attempts_since(since)
        if options["confirm"]:
            marks = TickWatermark.at(settings.REDIS_URL)
            anew = options["again"] or detect_restore.is_behind(marks)
            found = detect_restore.begin_hold(marks, since, by=options["by"], reason=options["reason"], anew=anew)
        if found and found.restored_to != since and not options["again"]:
            raise CommandError(restore_output.already_held(found, since))
        if options["json"]:
            result = {"dry_run": not options["confirm"], "new": bool(found and found.new), "sent_since": sent}
            said = restore_output.in_json(found, [], [])
            self.report({**result, **said, "unfinished": restore_hold.count_unfinished()})
            return
        if sent:
            self.say(
                f"{counted(sent, 'attempt')} began after {format_time(since)}: workers ran on the restored database "
                "and may have sent messages twice; or --since is not the time of the backup."
            )
        if found is None:
            unfinished = counted(restore_hold.count_unfinished(), "unfinished message")
            self.say(f"NOT HELD: this was a dry run. {unfinished}: held with --confirm.")
            return
        self.say(restore_output.hold_text(found))
        if options["again"] and not options["confirm"]:
            self.say("This was a dry run: with --confirm, a new hold begins, and earlier decisions are deleted.")
            return
        self.say("Nothing is sent until after_restore release. Start the workers: they capture, and report shows more.")

    def tell(self, options: dict[str, Any]) -> None:
        found = restore_hold.current_hold()
        if found is not None:
            restore_hold.doubt_newly_captured()
        counts, undrained = (restore_doubts.count_findings(), restore_hold.undrained_dlqs()) if found else ([], [])
        if options["json"]:
            result = restore_output.in_json(found, counts, undrained) | {"messages": PIECES}
            letters = ([restore_output.letter_in_json(one) for one in group] for group in reconcile.undecided_groups())
            self.report_in_pieces(result, chain([[]], letters))
        elif found is None:
            self.say("Nothing is held after a restore.")
        else:
            self.say("\n".join(restore_output.report_lines(found, counts, undrained)))

    def resolve(self, options: dict[str, Any]) -> None:
        words = {kind: RestoreDecision(options[kind]) for kind in reconcile.ALLOWED_DECISIONS if options[kind]}
        if not words:
            raise CommandError(
                "Nothing was done: no decision was given. Example: --finished parked --unfinished replay"
            )
        if restore_hold.current_hold() is None:
            raise CommandError("Nothing is held after a restore, so there is nothing to decide.")
        dlq = find_dlq(options["name"]) if options["name"] else None
        done = 0
        if options["confirm"]:
            log, pace = ProgressLog(self.stderr), Pace()
            done = reconcile.decide(
                words, dlq=dlq.pk if dlq else None, by=options["by"], reason=options["reason"],
                on_progress=lambda n: log.line_if_due(lambda: f"{n:,} messages decided{pace.add(n)}"),
            )  # fmt: skip
        left = restore_doubts.count_findings()
        if options["json"]:
            said = restore_output.in_json(restore_hold.current_hold(), left, [])
            self.report({"dry_run": not options["confirm"], "decided": done} | said)
            return
        meant = sum(one.n for one in left if (dlq is None or one.dlq == dlq.name) and one.kind in words)
        if not options["confirm"]:
            self.say(f"This was a dry run: {counted(meant, 'message')} would be decided with --confirm.")
            return
        undecided = sum(one.n for one in left)
        self.say(f"{counted(done, 'message')} decided, {undecided:,} left.")
        if not undecided and (found := restore_hold.current_hold()):
            self.say(restore_output.release_hint(found, restore_hold.undrained_dlqs()))

    def release(self, options: dict[str, Any]) -> None:
        found = restore_hold.current_hold()
        if options["confirm"]:
            follow_redrives.check_before_resuming(None)
            found = restore_hold.end_hold(by=options["by"], reason=options["reason"], early=options["early"])
        elif found:
            restore_hold.refuse_release(early=options["early"])
        if options["json"]:
            result = {"dry_run": not options["confirm"], "released": bool(options["confirm"] and found)}
            self.report({**result, "undecided": restore_hold.count_undecided()})
        elif found is None:
            self.say("Nothing is held after a restore, so there is nothing to release.")
        elif options["confirm"]:
            self.say("Sending resumes. Stops of stop_redrive remain.")
        else:
            self.say(f"{restore_output.hold_text(found)}\nThis was a dry run: with --confirm, sending resumes.")
