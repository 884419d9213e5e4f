"""Workbenches whose letters are already captured, sent or parked. `options` are a workbench's."""

from __future__ import annotations

from typing import Any

from reprocessing.models import Attempt
from tests.reprocessing.pipeline.bench import Workbench, enqueued, redriven


def captured(*bodies: str, **options: Any) -> Workbench:  # noqa: ANN401
    bench = Workbench(**options)
    bench.bury_all(*bodies)
    bench.capture()
    return bench


def parked(body: str, **options: Any) -> Workbench:  # noqa: ANN401
    """Return a bench whose letter was refused at its only attempt, and is parked."""
    bench = enqueued(body, **{**options, "fields": {"max_attempts": 1, **options.get("fields", {})}})
    with bench.refusing(body):
        bench.replay()
    return bench


def awaiting(body: str, **options: Any) -> Workbench:  # noqa: ANN401
    """Return a bench whose letter was sent, and is judged by absence at once."""
    return redriven(body, absence={"window": 0}, **options)


def bury_keyed(bench: Workbench, *letters: str) -> None:
    """Bury letters that are named by their key and sequence number: a1, b3."""
    for letter in letters:
        bench.bury(letter, key=letter[0], n=letter[1:])


def bodies_sent() -> list[str]:
    found = Attempt.objects.order_by("id").values_list("letter__payload__body", flat=True)
    return [bytes(body).decode() for body in found]
