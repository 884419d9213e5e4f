"""Check that a person who sees only some teams' DLQs does not use other teams' targets in the form of a DLQ."""

from __future__ import annotations

from collections.abc import Iterator

from reprocessing.admin.targets.target_fields import visible_target
from reprocessing.domain.errors import InvalidTarget, QueueUnreachable
from reprocessing.models import Target
from reprocessing.pipeline.dlqs import examine
from reprocessing.pipeline.dlqs.examine import Examination, Finding, Severity
from reprocessing.store.rights.visible_dlqs import VisibleDlqs
from reprocessing.store.targets import targets


def shared_targets(seen: VisibleDlqs, found: Examination) -> Iterator[Finding]:
    """Yield an error for each target that this person may not use or change, because DLQs of other teams use it."""
    known = targets.find_targets({*found.proposal.ways.values(), *found.proposal.targets} if not seen.are_all else ())
    changeable = set(seen.changeable(Target.objects.filter(arn__in=known)).values_list("arn", flat=True))
    visible = set(seen.rows(Target.objects.filter(arn__in=known)).values_list("arn", flat=True))
    for arn, row in known.items():
        changes = targets.differences(arn, found.proposal.targets.get(arn, {}), row)
        if arn not in visible or (arn not in changeable and changes):
            what = f"DLQs of other teams use the target {arn}, so you may not change it or send messages there."
            yield Finding(Severity.REFUSE, what, "Ask a person who sees the DLQs of all teams.")


def destination(seen: VisibleDlqs, named: str) -> Target:
    """Return the registered target with this name, ARN or URL; for a queue that is not registered, a new target.

    The new target is not saved.

    Raises:
        InvalidTarget: the person does not see the target, several targets have this name, or the queue is unreachable.
    """
    try:
        return visible_target(seen, named) or examine.queue_target(named)
    except QueueUnreachable as error:
        raise InvalidTarget(
            f"{named} is not a registered target, and cannot be read as a queue: {error} To send to an endpoint, a "
            "function, a topic or a bus, add it as a target first."
        ) from error
