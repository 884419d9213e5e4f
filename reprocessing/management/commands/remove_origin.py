"""`manage.py remove_origin`: a source queue is taken away from a dlq that its messages die into no more."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from reprocessing.domain.errors import QueueIsOutOfReach
from reprocessing.management.console import Console, add_confirm, add_json, add_name, add_person, find
from reprocessing.models import DeadLetterQueue, Origin
from reprocessing.sqs import QueueAddress, origins_of
from reprocessing.store.dlqs import origins


class Command(Console):
    """Takes an origin away, unless letters depend on it, or SQS still has its messages die into the dlq."""

    help = (
        "Takes away what messages of a dlq died in: a source queue, or what add_dlq --origin named. Refused while "
        "letters that died in it are unfinished or parked, and while its redrive policy names the dlq. History stays; "
        "add_dlq --origin names it again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_name(parser)
        parser.add_argument("origin", metavar="ORIGIN", help="its ARN, its URL, or the name of its queue")
        add_person(parser)
        add_confirm(parser)
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        dlq = find(options["name"])
        origin = origins.find(dlq, options["origin"])
        origins.refuse_needed(origin)
        silence = refuse_what_sqs_names(dlq, origin)
        if options["confirm"]:
            origins.remove(origin, by=options["by"], reason=options["reason"])
        if options["json"]:
            told = {"dlq": dlq.name, "origin": origin.arn, "dry_run": not options["confirm"], "sqs": silence or None}
            self.report(told)
            return
        if silence:
            self.say(f"Whether SQS still sends messages of {origin} to {dlq.name} is not known: {silence}")
        follows = f"What dies in it from now on is parked, until somebody names it again: add_dlq {dlq.name} --origin."
        if options["confirm"]:
            self.say(f"{origin} is taken away from {dlq.name}. {follows}")
        else:
            self.say(f"This was a dry run: {origin} is taken away from {dlq.name} with --confirm. {follows}")


def refuse_what_sqs_names(dlq: DeadLetterQueue, origin: Origin) -> str:
    """Refuse a queue whose redrive policy names the dlq; return why that is not known, empty where it is.

    Raises:
        CommandError: its messages still die into the dlq.
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
