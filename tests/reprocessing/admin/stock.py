"""Rows of everything that the desk shows."""

from __future__ import annotations

from reprocessing.models import (
    Act,
    Halt,
    HealthCheck,
    Notice,
    Pulse,
    RateClass,
    Report,
    Reporter,
    Review,
    Run,
    Sighting,
    Wave,
    amendments,
)
from reprocessing.models.lanes import clock
from tests.reprocessing.admin.lot import dlq, parked


def rows_of_everything() -> None:
    """Three rows of whatever there is."""
    for number in range(3):
        letter = parked(dlq(f"dlq-{number}"), key=f"key-{number}")
        run = Run.objects.create(name=f"run-{number}", dlq=letter.dlq)
        Wave.objects.create(run=run, no=1, size=1)
        Notice.objects.create(letter=letter, news="parked")
        Pulse.beat(f"queue-{number}")
        Review.objects.create(act=Act.RELEASED, letter=letter, dlq=letter.dlq, by="ann", reason="mended")
        assert letter.target
        Sighting.objects.create(target=letter.target, seen_at=clock())
        HealthCheck.objects.create(target=letter.target, kind="alarm", subject="shop")
        reporter = Reporter.objects.create(name=f"shop-{number}", token_hash=b"%d" % number, added_by="ann")
        Report.objects.create(
            reporter=reporter, public_id=letter.public_id, verdict="failed", type="KeyError", message="'card'",
            happened_at=clock(), received_at=clock(), digest=b"%d" % number,
        )  # fmt: skip
    Halt.objects.create(by="ann", reason="a test")
    RateClass.objects.create(name="slow")
    amendments.put("bad", {"action": "hold", "conditions": []}, by="ann", reason="a test")
