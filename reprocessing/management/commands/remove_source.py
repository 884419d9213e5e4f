"""The command `manage.py remove_source`, which removes a source queue that no longer uses a DLQ."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from reprocessing.domain.errors import QueueUnreachable
from reprocessing.gateways.sqs import QueueAddress, sources_of
from reprocessing.management.arguments import add_change_options, add_name
from reprocessing.management.console import Console, find_dlq
from reprocessing.models import DeadLetterQueue, Source
from reprocessing.store.dlqs import source_queues


class Command(Console):
    """Remove a source queue that no longer uses a DLQ.

    The command is refused while messages from the source queue are unfinished or parked, or while the source queue's
    redrive policy names the DLQ. The history of messages from this source queue is kept. To add the queue again, use
    add_dlq --source.

    Examples:
        remove_source orders orders-v1 --reason "queue was deleted"
        remove_source orders orders-v1 --reason "queue was deleted" --confirm
    """

    def add_arguments(self, parser: CommandParser) -> None:
        add_name(parser)
        parser.add_argument("source", metavar="SOURCE", help="ARN, URL or name of the source queue")
        add_change_options(parser)

    def answer(self, options: dict[str, Any]) -> None:
        dlq = find_dlq(options["name"])
        source = source_queues.find_source(dlq, options["source"])
        source_queues.refuse_if_needed(source)
        silence = refuse_what_sqs_names(dlq, source)
        if options["confirm"]:
            source_queues.remove_source(source, by=options["by"], reason=options["reason"])
        if options["json"]:
            result = {"dlq": dlq.name, "source": source.arn, "dry_run": not options["confirm"], "sqs": silence or None}
            self.report(result)
            return
        if silence:
            self.say(f"It is not known whether the redrive policy of {source} still names {dlq.name}: {silence}")
        follows = (
            "Later messages from it are parked. To add it again: "
            f"manage.py add_dlq {dlq.name} --source {source.arn} --confirm"
        )
        if options["confirm"]:
            self.say(f"{source} is removed from {dlq.name}. {follows}")
        else:
            self.say(f"This was a dry run: with --confirm, {source} is removed from {dlq.name}. {follows}")


def refuse_what_sqs_names(dlq: DeadLetterQueue, source: Source) -> str:
    """Check that the redrive policy of the source queue no longer names the DLQ.

    Returns:
        Why the redrive policy could not be read, or an empty text if it was read.

    Raises:
        CommandError: the redrive policy still names the DLQ.
    """
    try:
        urls = sources_of(QueueAddress(dlq.url, dlq.region, dlq.role_arn))
    except QueueUnreachable as error:
        return str(error)
    if source.target.url in urls or source.arn.rpartition(":")[2] in {url.rpartition("/")[2] for url in urls}:
        raise CommandError(
            f"Nothing was done: the redrive policy of {source} still names {dlq.name}. Change that first: "
            f"aws sqs set-queue-attributes, or give {source} another DLQ."
        )
    return ""
