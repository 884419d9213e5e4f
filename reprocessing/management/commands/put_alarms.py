"""The command `manage.py put_alarms`, which creates or checks CloudWatch alarms."""

from __future__ import annotations

import json
from argparse import ArgumentTypeError
from typing import Any, Final, assert_never

from django.core.management.base import CommandError, CommandParser

from reprocessing import conf
from reprocessing.domain.aws.cloudwatch_alarm import AlarmMissing, ParameterDiffers
from reprocessing.domain.message.arn import ResourceKind, read
from reprocessing.gateways.aws.clients import configured_region
from reprocessing.management.arguments import add_confirm, add_json
from reprocessing.management.console import Console, find_dlq
from reprocessing.pipeline.aws import put_alarms
from reprocessing.pipeline.aws.put_alarms import AlarmComparison

#: Max actions of an alarm. Source: AWS, PutMetricAlarm, AlarmActions.
_MOST: Final = 5
_TOLD: Final = frozenset({ResourceKind.TOPIC, ResourceKind.FUNCTION})
_OTHERS: Final = tuple(
    f"arn:{partition}:{service}:"
    for partition in ("aws", "aws-cn", "aws-us-gov")
    for service in ("autoscaling", "ssm", "ssm-incidents")
)


class Command(Console):
    """Create or check the CloudWatch alarms of DLQs, source queues, targets and the service itself.

    Without --confirm, shows which alarms are missing or differ. --confirm creates and updates them. The names of the
    alarms begin with redrive-. The alarm about the number of messages in a DLQ also counts invisible messages, because
    a capture makes messages invisible.

    Examples:
        put_alarms orders
        put_alarms --action arn:aws:sns:eu-west-1:111122223333:on-call --confirm
    """

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "names",
            nargs="*",
            metavar="NAME",
            help="names of DLQs, as given to add_dlq (default: all DLQs, and the service itself)",
        )
        parser.add_argument(
            "--action", action="append", default=[], type=action, metavar="ARN",
            help="ARN that the alarms notify, such as an SNS topic; repeatable (default: unchanged)",
        )  # fmt: skip
        add_confirm(parser)
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        for its in {arn.split(":")[3] for arn in options["action"]}:
            if (n := len(put_alarms.actions_in_region(options["action"], its))) > _MOST:
                raise CommandError(
                    f"CloudWatch allows {_MOST} actions of an alarm; {n} were given{_of(its)}. Leave out some."
                )
        for name in options["names"]:
            find_dlq(name)
        region, namespace, actions = configured_region(), conf.current().cloudwatch, tuple(options["action"])
        if not region:
            raise CommandError("No region is configured. Set AWS_DEFAULT_REGION.")
        comparisons = put_alarms.compare_alarms(region, namespace, names=options["names"], actions=actions)
        if actions and (mute := put_alarms.regions_without_action(comparisons, actions)):
            raise CommandError(
                f"The alarms{_of(', '.join(mute))} have no --action of their region, and CloudWatch refuses actions of "
                f"another region. Add one, such as --action arn:aws:sns:{mute[0]}:111122223333:on-call."
            )
        if not options["json"]:
            self.tell(comparisons, namespace, options)
        done = []
        for one in put_alarms.put_differing(comparisons, actions) if options["confirm"] else ():
            done.append(one.wanted.name)
            if not options["json"]:
                self.say(f"  {one.wanted.name}: done")
        if options["json"]:
            self.report(
                {"dry_run": not options["confirm"], "alarms": [_object(one) for one in comparisons], "put": done}
            )
        else:
            self.say(_last_line(comparisons, acted=options["confirm"]))

    def tell(self, comparisons: list[AlarmComparison], namespace: str, options: dict[str, Any]) -> None:
        for one in comparisons:
            self.say(f"{one.wanted.name} ({one.region}): {_state(one)}")
            for each in one.differences:
                self.say(f"  {_line(each)}")
        for name in put_alarms.dlqs_of_other_accounts(options["names"]):
            self.say(f"{name}: its queues are in another account. Create their alarms there.")
        if not namespace:
            self.say(
                "Alarms on the service's own metrics are omitted, because the service publishes none. "
                "Set REDRIVE_CLOUDWATCH to a namespace, such as Redrive/Production."
            )


def action(text: str) -> str:
    """Read the ARN of an alarm action, such as an SNS topic."""
    found = read(text)
    if found is None or not (found.named in _TOLD or text.startswith(_OTHERS)):
        raise ArgumentTypeError(
            f"{text!r} cannot be the action of an alarm. Give an SNS topic, such as "
            "arn:aws:sns:eu-west-1:111122223333:on-call, a Lambda function, a scaling policy, or an OpsItem or "
            "response plan of Systems Manager"
        )
    return text


def _of(regions: str) -> str:
    return f" in {regions}" if regions else ""


def _state(one: AlarmComparison) -> str:
    if not one.differences:
        return "as wanted"
    return "missing" if isinstance(one.differences[0], AlarmMissing) else "differs"


def _line(one: AlarmMissing | ParameterDiffers) -> str:
    match one:
        case AlarmMissing():
            return "to be created"
        case ParameterDiffers():
            return f"{one.what}: is {_in_words(one.found)}, wanted {_in_words(one.wanted)}"
        case _:
            assert_never(one)


def _in_words(value: object) -> str:
    if value in (None, []):
        return "nothing"
    return value if isinstance(value, str) else json.dumps(value, default=str, sort_keys=True)


def _object(one: AlarmComparison) -> dict[str, Any]:
    changed = [
        {"what": each.what, "is": each.found, "wanted": each.wanted}
        for each in one.differences
        if isinstance(each, ParameterDiffers)
    ]
    return {
        "alarm": one.wanted.name, "region": one.region, "dlq": one.wanted.dlq, "state": _state(one), "differs": changed,
        "means": one.wanted.description,
    }  # fmt: skip


def _last_line(comparisons: list[AlarmComparison], *, acted: bool) -> str:
    n = sum(bool(one.differences) for one in comparisons)
    if not n:
        return "All alarms are as wanted: nothing to change."
    if not acted:
        return f"This was a dry run: nothing was changed. Add --confirm to create or update {n} of {len(comparisons)}."
    return f"Done: {n} of {len(comparisons)} created or updated."
