"""Measure what tracing costs: the processor time of an attempt's span, and of an attempt that is not traced.

Makes spans of groups of fifty attempts, as a slice does, with the SDK's queue, and an exporter that drops the spans.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from uuid import uuid4

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ["DJANGO_SETTINGS_MODULE"] = "redrive_service.help_settings"

import django

django.setup()  # the imports below need it

from opentelemetry.sdk.trace import ReadableSpan  # noqa: E402
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult  # noqa: E402

from redrive_service.telemetry import tracing  # noqa: E402
from reprocessing.conf import Conf  # noqa: E402
from reprocessing.domain.message.envelope import Attribute, pack_attributes  # noqa: E402
from reprocessing.domain.replay.verdicts import Outcome, Taken  # noqa: E402
from reprocessing.gateways.tracing.tracer import flush  # noqa: E402
from reprocessing.models import Target  # noqa: E402
from reprocessing.pipeline.replay.attempt_spans import AttemptSpans, spans_for  # noqa: E402
from reprocessing.store.replay.intent import IntendedSend  # noqa: E402

GROUP: Final = 50  #: attempts of a group
PARENT: Final = f"00-{'a' * 32}-{'b' * 16}-01"


class Nowhere(SpanExporter):
    """An exporter that drops all spans."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Drop the spans, and return success."""
        del spans
        return SpanExportResult.SUCCESS


def attempt(number: int) -> IntendedSend:
    """Return an attempt of a message with a trace and two other attributes."""
    names = {"traceparent": PARENT, "order": "o-4711", "tenant": "t-1"}
    return IntendedSend(
        attempt_id=number, no=1, opened_at=datetime.fromtimestamp(1_800_000_000, UTC), letter_id=number,
        lane_id=number, fence=1, target_id=1, dlq_id=1, attempts=1, tries=1, is_automatic=False, not_sent=0, epoch=0,
        sequence="1", public_id=uuid4(), message_id=str(uuid4()), idempotency_key=None, released=False,
        body=b"x" * 1_000, system={},
        attributes=pack_attributes({name: Attribute("String", text) for name, text in names.items()}),
        source_arn=None, run_id=None, breaker_id=1, wave_id=None, wave_size=None, lease_left=8.0,
        unsure=False, backoff_base=None, backoff_cap=None, backoff_jitter=None,
    )  # fmt: skip


def microseconds(spans: AttemptSpans | None, groups: int) -> float:
    """Return the processor time of one attempt in microseconds: the median of the groups. `spans` None: no tracing."""
    spent = list[float]()
    for group in range(groups):
        intended = [attempt(group * GROUP + number) for number in range(GROUP)]
        outcomes: dict[int, Outcome] = {one.attempt_id: Taken(one.message_id) for one in intended}
        began = time.thread_time()
        if spans:
            spans.begin(intended, {1: "orders"}, began=0.0)
            spans.note_end(one.attempt_id for one in intended)
            spans.record(intended, outcomes, {1: "orders"})
        spent.append((time.thread_time() - began) * 1e6 / GROUP)
    return statistics.median(spent)


def main() -> None:
    """Print the microseconds for one attempt: not traced, traced, and traced with its context in the message."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=200, help="groups of fifty attempts")
    groups = parser.parse_args().groups
    tracing.start(Nowhere())
    targets = {1: Target(pk=1, kind="sqs", arn="arn:aws:sqs:eu-west-1:111122223333:orders")}
    for name, conf in (
        ("not traced", Conf()), ("traced", Conf(traces=True)), ("in messages", Conf(traces=True, trace_messages=True)),
    ):  # fmt: skip
        print(f"{name:<12} {microseconds(spans_for(conf, targets), groups):6.1f} µs of processor time for one attempt")
    flush(5)


if __name__ == "__main__":
    main()
