"""`manage.py remove_origin`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from reprocessing.domain.errors import QueueIsOutOfReach
from reprocessing.gateways.sqs import QueueAddress, origins_of
from reprocessing.management.arguments import add_change, add_name
from reprocessing.management.console import Console, find
from reprocessing.models import DeadLetterQueue, Origin
from reprocessing.store.dlqs import source_queues


class Command(Console):
    """Remove a source queue that no longer uses a DLQ.

    Refused while messages from it are unfinished or parked, and while its redrive policy names the DLQ. The history
    of its messages is kept. add_dlq --origin adds it again.

    Examples:
        remove_origin orders orders-v1 --reason "queue was deleted"
        remove_origin orders orders-v1 --reason "queue was deleted" --confirm
    """

    def add_arguments(self, parser: CommandParser) -> None:
        add_name(parser)
        parser.add_argument("origin", metavar="ORIGIN", help="ARN, URL or queue name of the source")
        add_change(parser)

    def answer(self, options: dict[str, Any]) -> None:
        dlq = find(options["name"])
        origin = source_queues.find(dlq, options["origin"])
        source_queues.refuse_needed(origin)
        silence = refuse_what_sqs_names(dlq, origin)
        if options["confirm"]:
            source_queues.remove(origin, by=options["by"], reason=options["reason"])
        if options["json"]:
            told = {"dlq": dlq.name, "origin": origin.arn, "dry_run": not options["confirm"], "sqs": silence or None}
            self.report(told)
            return
        if silence:
            self.say(f"It is not known whether the redrive policy of {origin} still names {dlq.name}: {silence}")
        follows = (
            "Later messages from it are parked. To add it again: "
            f"manage.py add_dlq {dlq.name} --origin {origin.arn} --confirm"
        )
        if options["confirm"]:
            self.say(f"{origin} is removed from {dlq.name}. {follows}")
        else:
            self.say(f"This was a dry run: with --confirm, {origin} is removed from {dlq.name}. {follows}")


def refuse_what_sqs_names(dlq: DeadLetterQueue, origin: Origin) -> str:
    """Refuse a queue whose redrive policy names the DLQ.

    Returns:
        Why the redrive policy is not known; empty if it is known.

    Raises:
        CommandError: the redrive policy still names the DLQ.
    """
    try:
        urls = origins_of(QueueAddress(dlq.url, dlq.region, dlq.role_arn))
    except QueueIsOutOfReach as error:
        return str(error)
    if origin.target.url in urls or origin.arn.rpartition(":")[2] in {url.rpartition("/")[2] for url in urls}:
        raise CommandError(
            f"Nothing was done: the redrive policy of {origin} still names {dlq.name}. Change that first: "
            f"aws sqs set-queue-attributes, or give {origin} another dlq."
        )
    return ""
