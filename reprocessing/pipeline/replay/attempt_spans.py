"""Trace attempts with OpenTelemetry: one span for each attempt, in the trace of its message.

Spans are recorded outside of transactions.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reprocessing.conf import Conf
from reprocessing.domain.message.envelope import unpack_attributes
from reprocessing.domain.replay.attempt_span import AttemptFacts, result_of
from reprocessing.domain.replay.verdicts import Outcome
from reprocessing.domain.sources import message_trace
from reprocessing.domain.targets.target_kind import TargetKind
from reprocessing.models import Run, Target
from reprocessing.store.replay.intent import IntendedSend

if TYPE_CHECKING:
    from reprocessing.gateways.tracing.tracer import AttemptTracer, StartedSpan

logger = logging.getLogger(__name__)

#: The trace fields (`traceparent`, `tracestate`) with which each message is sent, by attempt id.
TraceFields = Mapping[int, Mapping[str, str]]


@dataclass(slots=True)
class AttemptSpans:
    """The spans of all attempts of one slice (the 5 s for which a worker sends).

    If tracing fails, the error is logged, and the rest of the slice is not traced. An error of tracing neither delays a
    letter nor lets it fail.
    """

    targets: Mapping[int, Target]
    sends_context: bool  # whether messages are sent with the trace fields of their attempt's span
    _tracer: AttemptTracer
    _began: dict[int, float] = field(default_factory=dict)  # monotonic times, by attempt id
    _ended: dict[int, float] = field(default_factory=dict)
    _spans: dict[int, StartedSpan] = field(default_factory=dict)  # spans that were started before the send
    _runs: dict[int, str] = field(default_factory=dict)
    _is_broken: bool = False

    def begin(self, intended: Sequence[IntendedSend], dlqs: Mapping[int, str], *, began: float) -> TraceFields:
        """Note when attempts began. If messages carry trace fields, start the spans; return the fields by attempt id.

        If messages carry no trace fields, return an empty mapping. `began`: monotonic time. `dlqs`: names of the DLQs,
        by id.
        """
        self._began |= dict.fromkeys((attempt.attempt_id for attempt in intended), began)
        if not self.sends_context or self._is_broken:
            return {}
        from reprocessing.gateways.tracing.tracer import fields_of  # noqa: PLC0415  an optional dependency

        try:
            self._load_runs(intended)
            self._spans |= {attempt.attempt_id: self._start(attempt, dlqs) for attempt in intended}
            return {attempt.attempt_id: fields_of(self._spans[attempt.attempt_id]) for attempt in intended}
        except Exception as error:  # noqa: BLE001  # no error may stop a send
            self._stop_tracing(error)
            return {}

    def note_end(self, attempts: Iterable[int]) -> None:
        """Note that the attempts with these ids ended now."""
        self._ended |= dict.fromkeys(attempts, time.monotonic())

    def record(
        self, intended: Sequence[IntendedSend], outcomes: Mapping[int, Outcome], dlqs: Mapping[int, str]
    ) -> None:
        """Record the spans of these attempts, with their outcomes. An attempt whose span is recorded is skipped."""
        new = [attempt for attempt in intended if attempt.attempt_id in self._began]
        try:
            if not self._is_broken:
                self._load_runs(new)
                for attempt in new:
                    self._record(attempt, outcomes.get(attempt.attempt_id), dlqs)
        except Exception as error:  # noqa: BLE001  # no error may stop a send
            self._stop_tracing(error)
        for attempt in new:
            for notes in (self._began, self._ended, self._spans):
                notes.pop(attempt.attempt_id, None)

    def _record(self, attempt: IntendedSend, outcome: Outcome | None, dlqs: Mapping[int, str]) -> None:
        from reprocessing.gateways.tracing.tracer import end  # noqa: PLC0415  an optional dependency

        began = self._began[attempt.attempt_id]
        span = self._spans.get(attempt.attempt_id) or self._start(attempt, dlqs)
        took = self._ended.get(attempt.attempt_id, began) - began
        end(span, result_of(outcome), opened_at=attempt.opened_at, took=took)

    def _start(self, attempt: IntendedSend, dlqs: Mapping[int, str]) -> StartedSpan:
        target = self.targets[attempt.target_id]
        facts = AttemptFacts(
            kind=target.kind, target=target.url if target.kind == TargetKind.HTTP else target.arn,
            dlq=dlqs[attempt.dlq_id], redrive_id=str(attempt.public_id), message_id=attempt.message_id,
            key_queue=attempt.lane_id, number=attempt.no, run=self._runs.get(attempt.run_id or 0, ""),
        )  # fmt: skip
        contexts = message_trace.contexts(
            bytes(attempt.body), unpack_attributes(bytes(attempt.attributes)), attempt.system,
            is_task=target.kind == TargetKind.CELERY,
        )  # fmt: skip
        return self._tracer.start(facts, contexts, opened_at=attempt.opened_at)

    def _load_runs(self, intended: Sequence[IntendedSend]) -> None:
        if missing := {attempt.run_id for attempt in intended if attempt.run_id} - self._runs.keys():
            self._runs |= dict(Run.objects.filter(pk__in=missing).values_list("pk", "name"))

    def _stop_tracing(self, error: Exception) -> None:
        self._is_broken = True
        # The text of the error may quote a message.
        logger.error("Tracing failed (%s). The other attempts of this task are not traced.", type(error).__name__)


def spans_for(conf: Conf, targets: Mapping[int, Target]) -> AttemptSpans | None:
    """Return the object that traces the attempts of one slice (5 s of sending); None: tracing is off.

    `targets`: the targets, by id; the caller may add targets later.
    """
    if not conf.traces:
        return None
    from reprocessing.gateways.tracing.tracer import AttemptTracer  # noqa: PLC0415  an optional dependency

    return AttemptSpans(targets, conf.trace_messages, AttemptTracer())


def flush(conf: Conf, seconds: float) -> None:
    """If tracing is on, export the ended spans of this process, and wait up to `seconds` for that."""
    if conf.traces:
        from reprocessing.gateways.tracing.tracer import flush as flush_spans  # noqa: PLC0415  an optional dependency

        flush_spans(seconds)
