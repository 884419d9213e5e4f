"""Find the target to which a person wants to release messages, by its name."""

from __future__ import annotations

from django.db.models import Q

from reprocessing.domain.errors import InvalidTarget
from reprocessing.models import DeadLetterQueue, Target
from reprocessing.store.rights.visible_dlqs import EVERY_DLQ, VisibleDlqs


def find_target(name: str, *, seen: VisibleDlqs = EVERY_DLQ, cure: str) -> Target:
    """Return the target with this name, ARN or URL.

    `seen`: the DLQs that the person may see; only their targets are found. `cure`: a sentence for the error's text that
    says what to do if there is no such target.

    Raises:
        InvalidTarget: there is no such target, several targets have this name, or the target is a registered DLQ.
    """
    named = Q(arn=name) | Q(url=name) | Q(arn__endswith=f":{name}")
    found = list(seen.rows(Target.objects.filter(named)).order_by("arn")[:3])
    if len(found) != 1:
        cure = f"Give its ARN: {', '.join(target.arn for target in found)}" if found else cure
        there = "several targets are" if found else "no target is"
        raise InvalidTarget(f'Nothing was done: {there} named "{name}". {cure}')
    if watched := DeadLetterQueue.objects.filter(arn=found[0].arn).first():
        raise InvalidTarget(
            f"Nothing was done: {name} is the registered DLQ {watched.name}. Messages sent there would be captured as "
            "failed. Give another queue."
        )
    return found[0]
