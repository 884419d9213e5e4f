"""The command `manage.py edit_messages`, which edits the JSON bodies of parked messages by a JSON Patch."""

from __future__ import annotations

import json
from argparse import ArgumentTypeError
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from uuid import UUID, uuid5

from django.core.management.base import CommandError, CommandParser

from reprocessing import conf
from reprocessing.domain.errors import InvalidPatch
from reprocessing.domain.parking_lot.bulk_edit import BulkEdit, operations_of
from reprocessing.domain.parking_lot.json_patch import LONGEST_PATCH, JsonPatch
from reprocessing.domain.parking_lot.message_filter import MOST_SELECTED, MessageFilter
from reprocessing.domain.parking_lot.selection_mark import MICROSECOND, selection_mark
from reprocessing.management.console import find_dlq
from reprocessing.management.shared import parking_selection
from reprocessing.management.shared.approval_text import approval_text
from reprocessing.management.shared.parking_command import ParkingCommand
from reprocessing.management.shared.parking_selection import Parked, filter_options, no_match, selection_lines
from reprocessing.management.shared.progress import Pace, ProgressLog
from reprocessing.models import BulkAction, BulkActionKind, BulkActionState, DeadLetterQueue, Letter
from reprocessing.pipeline.parking_lot import preview_edit, run_bulk_actions
from reprocessing.pipeline.parking_lot.preview_edit import EditPreview
from reprocessing.store.ordering import lanes
from reprocessing.store.parking_lot import bulk_actions

#: Namespace of the ids of bulk actions: the same command gets the same id, so it continues the same bulk action.
_TOKENS: Final = UUID("0c9e2a52-5d34-4f4a-8d5c-7f9f5f2c9a11")
_WITHOUT_END: Final = 10**9  #: max seconds of a dry run: in effect no limit, so that it checks all messages


@dataclass(frozen=True, slots=True)
class _Chosen:
    """A selected message: the id of its letter, and the time when it was last parked or edited."""

    id: int
    since: datetime


class Command(ParkingCommand):
    """Edit the JSON bodies of parked messages by a JSON Patch (RFC 6902).

    Everything that the patch does not name stays as it is, byte for byte. The captured originals are kept. Only
    messages that the patch fits are changed. --confirm needs the --selection that a dry run prints. If the command is
    killed, run it again: each message is edited once.

    Examples:
        edit_messages orders --patch '[{"op": "replace", "path": "/country", "value": "DE"}]' --reason "wrong country"
        edit_messages orders --patch '[{"op": "remove", "path": "/legacy"}]' --release --reason "new consumer"
    """

    done_word = "edited"

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--patch", required=True, type=patch, metavar="FILE|JSON",
            help="the JSON Patch: a list of operations, or the name of a file with such a list",
        )  # fmt: skip
        parser.add_argument(
            "--release", action="store_true", help="release each edited message (default: it stays parked)"
        )
        parser.add_argument(
            "--new-keys", action="store_true",
            help="give each edited message a new idempotency key, so that the consumer treats it as new",
        )  # fmt: skip
        parser.add_argument(
            "--changes-keys", action="store_true",
            help="also edit messages in which the patch changes the value of a key, such as the ordering key; without "
            "this option, these messages are not edited",
        )  # fmt: skip

    def act_options(self, options: dict[str, Any]) -> list[str]:
        flags = [f"--{name.replace('_', '-')}" for name in ("release", "new_keys", "changes_keys") if options[name]]
        return ["--patch", options["patch"].text, *flags]

    def answer(self, options: dict[str, Any]) -> None:
        dlq, wanted = find_dlq(options["name"]), _wanted(options)
        if options["confirm"] and options["selection"] is None:
            raise CommandError("Nothing was done: --confirm needs --selection, which the dry run shows.")
        begun = BulkAction.objects.filter(token=_token(dlq, options["selection"], wanted)).first()
        if options["confirm"] and begun is not None:
            self._finish(begun, wanted, options)
            return
        now = lanes.database_now()
        chosen = parking_selection.select_messages(dlq, self.state, options)
        mark = selection_mark(_with_edits(dlq, chosen))
        if options["selection"] not in {None, mark}:
            raise CommandError(
                "Nothing was done: some messages of the dry run are no longer parked, or were edited or parked again. "
                "To see the current messages, leave out --confirm and --selection."
            )
        if not chosen and filter_options(options):
            raise CommandError(no_match(dlq, self.state, options))
        if not options["confirm"] or not chosen:
            self._show(dlq, chosen, wanted, options, mark)
            return
        criteria, token = _criteria(dlq, chosen, options), _token(dlq, mark, wanted)
        bulk_actions.create(
            token,
            BulkActionKind.EDIT,
            criteria,
            wanted.arguments(),
            by=options["by"],
            reason=options["reason"],
            opened=now,
        )
        self._finish(BulkAction.objects.get(token=token), wanted, options)

    def _show(
        self, dlq: DeadLetterQueue, chosen: Sequence[Parked], wanted: BulkEdit, options: dict[str, Any], mark: str
    ) -> None:
        pace, log, total = Pace(), ProgressLog(self.stderr), len(chosen)
        found = preview_edit.preview(
            [one.id for one in chosen], wanted, conf.current().marks, seconds=_WITHOUT_END, samples=0,
            progress=lambda n: log.line_if_due(lambda: f"{n:,} of {total:,} checked{pace.add(n, total - n)}"),
        )  # fmt: skip
        if options["json"]:
            self.report({"dlq": dlq.name, **_in_json(found, None, wanted), "selection": mark})
            return
        lines = [*selection_lines(dlq, self.state, chosen)]
        if chosen:
            lines += approval_text({dlq.pk: total}, by=options["by"])
            lines += _preview_lines(found, wanted, {one.id: one.message_id for one in chosen})
            dry = "This was a dry run: nothing is edited."
            lines += [f"{dry} To edit exactly these:", self.acting_command(options, mark)] if found.fits else [dry]
        self.say("\n".join(lines))

    def _finish(self, row: BulkAction, wanted: BulkEdit, options: dict[str, Any]) -> None:
        """Work on a bulk edit until it has ended, and show the result."""
        pace, log = Pace(), ProgressLog(self.stderr)
        try:
            while row.state == BulkActionState.RUNNING:
                run_bulk_actions.run_bulk_action(row.pk, seconds=1.0)
                row.refresh_from_db()
                past, left = row.done + row.letters_skipped, row.asked - row.done - row.letters_skipped
                log.line_if_due(lambda: f"{past:,} of {row.asked:,} messages{pace.add(past, left)}")  # noqa: B023
        except KeyboardInterrupt:
            raise CommandError(
                f"Interrupted. Workers continue bulk action {row.pk}, and so does the same command. To abort it, open "
                "its page in the admin.",
                returncode=130,
            ) from None
        if options["json"]:
            self.report(_in_json(None, row, wanted))
        else:
            self.say("\n".join(_result_lines(row)))
        if row.done < row.asked:
            raise CommandError(f"{row.asked - row.done:,} of {row.asked:,} are not edited: reasons above.")


def patch(text: str) -> JsonPatch:
    """Read the value of --patch: a JSON Patch, or the name of a file with one."""
    try:
        if not text.lstrip().startswith(("[", "{")):
            text = _file(Path(text))
        return JsonPatch.parse(text)
    except InvalidPatch as error:
        raise ArgumentTypeError(str(error)) from error


def _file(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            return file.read(LONGEST_PATCH + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ArgumentTypeError(
            f"the file {str(path)!r} cannot be read: {why}. Give a file, or a JSON Patch, which begins with ["
        ) from error


def _wanted(options: dict[str, Any]) -> BulkEdit:
    flags = {name: options[name] for name in ("release", "new_keys", "changes_keys")}
    return BulkEdit(options["patch"], **flags)


def _token(dlq: DeadLetterQueue, mark: str | None, wanted: BulkEdit) -> UUID:
    """Return the id of the bulk action that this command starts or continues. `mark` identifies the chosen messages."""
    return uuid5(_TOKENS, json.dumps([dlq.pk, mark, wanted.arguments()]))


def _with_edits(dlq: DeadLetterQueue, chosen: Sequence[Parked]) -> list[_Chosen]:
    edited = Letter.objects.filter(dlq=dlq, state=ParkingCommand.state, revision__isnull=False)
    times = dict(edited.values_list("pk", "revision__at"))
    return [_Chosen(one.id, max(one.since, times.get(one.id, one.since))) for one in chosen]


def _criteria(dlq: DeadLetterQueue, chosen: Sequence[Parked], options: dict[str, Any]) -> MessageFilter:
    """Return the filter that selects the chosen messages."""
    letters = None
    if options["message_id"] or options["limit"] is not None:
        letters = tuple(one.id for one in chosen)
        if len(letters) > MOST_SELECTED:
            raise CommandError(f"Nothing was done: --limit and --message-id select at most {MOST_SELECTED:,} messages.")
    newest = max(one.since for one in chosen)  # exclude messages that reached --older-than after the dry run
    return MessageFilter(
        dlq=dlq.pk, reasons=tuple(options["parked_for"] or ()), key=options["key"], letters=letters,
        finished_before=None if options["older_than"] is None else newest + MICROSECOND,
    )  # fmt: skip


def _preview_lines(found: EditPreview, wanted: BulkEdit, ids: Mapping[int, str]) -> Iterable[str]:
    """Yield lines about a dry run: the operations, how many messages they fit, and why they do not fit others.

    `ids` has the message id of each letter, by the letter's id.
    """
    yield from (f"  {operation}" for operation in operations_of(wanted.patch))
    after = "are released" if wanted.release else "stay parked"
    yield f"The patch fits {found.fits:,} of {found.checked:,} messages. Edited messages {after}."
    for why, n, letter in found.unfit:
        yield f"  {n:,} not changed, since {why}: {ids.get(letter, letter)}{' …' if n > 1 else ''}"
    for sentence, n in found.touched:
        yield f"  {n:,}: {sentence}{'' if wanted.changes_keys else ' They are skipped. To edit them: --changes-keys'}"


def _result_lines(row: BulkAction) -> Iterable[str]:
    """Yield lines about an ended bulk edit: how many messages were edited, and why others were not."""
    yield f"{row.done:,} of {row.asked:,} {'is' if row.asked == 1 else 'are'} edited."
    if row.state == BulkActionState.ABORTED:
        yield f"{row.aborted_by} aborted it: {row.why}"
    reasons = Counter(row.refusals.values())
    yield from (f"{n:,} skipped, since {why}" for why, n in reasons.most_common())
    if row.letters_skipped > sum(reasons.values()):
        more = row.letters_skipped - sum(reasons.values())
        yield f"{more:,} more were skipped; their reasons were not stored."
    if row.state == BulkActionState.DONE and (gone := row.asked - row.done - row.letters_skipped) > 0:
        yield f"{gone:,} changed after the dry run, and were left as they are."


def _in_json(found: EditPreview | None, row: BulkAction | None, wanted: BulkEdit) -> dict[str, Any]:
    """Return a dry run, or an ended bulk edit, as a JSON object."""
    result: dict[str, Any] = {"dry_run": row is None, "operations": operations_of(wanted.patch)}
    if found is not None:
        result |= {
            "checked": found.checked, "fits": found.fits, "unfit": {why: n for why, n, _ in found.unfit},
            "changes_keys": dict(found.touched),
        }  # fmt: skip
    if row is not None:
        result |= {
            "bulk_action": row.pk, "state": row.state, "messages": row.asked, "edited": row.done,
            "skipped": row.letters_skipped, "skipped_because": dict(Counter(row.refusals.values())),
        }  # fmt: skip
    return result
