"""Check target queues that Celery workers consume."""

from __future__ import annotations

from collections.abc import Iterator

from reprocessing.domain.targets.target_kind import QUEUE_KINDS, TargetKind
from reprocessing.pipeline.dlqs.examine.findings import Case, Finding, refuse, warn

#: Options of add_dlq that change task messages, by the field of the target that stores the option.
_OF_TASKS = {
    "strips_eta": "--strip-eta",
    "strips_expires": "--strip-expires",
    "resets_retries": "--reset-retries",
    "renews_id": "--new-id",
}


def tasks(case: Case) -> Iterator[Finding]:
    """Queues of Celery workers have a redrive policy, and only task messages are changed.

    The admin shows this sentence if the check passes. Else, the check yields a finding for each queue or option that
    does not fit Celery workers.
    """
    for arn, target in case.observed.other_targets.items():
        if target.kind not in QUEUE_KINDS and case.of_target(arn, "kind") in QUEUE_KINDS:
            yield refuse(f"{target} is no queue, so no Celery workers consume it.", "Leave out --celery.")
    for seen in case.observed.queues.values():
        name = seen.address.name
        if case.of_target(seen, "kind") != TargetKind.CELERY:
            asked = [option for field, option in _OF_TASKS.items() if case.of_target(seen, field)]
            if asked:
                yield refuse(
                    f"{' and '.join(asked)} change Celery task messages, but --celery is not set for {name}.",
                    "Add --celery.",
                )
            continue
        if seen.facts.redrive is None:
            yield refuse(
                f"{name} has no redrive policy: Celery workers delete what they reject from such a queue (kombu 5.7), "
                "so a message of a task that they do not know would be lost.",
                f"Give {name} a redrive policy that names this DLQ.",
            )
        if seen.facts.fifo:
            yield warn(
                f"{name} is a FIFO queue: a Celery worker receives several messages of a group at once, and runs them "
                "side by side.",
                "Run one worker with --concurrency 1 and --prefetch-multiplier 1.",
            )
