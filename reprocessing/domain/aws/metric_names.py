"""Define the names of all metrics in Prometheus and CloudWatch.

Many redrive tools that others have published use the same names RedriveSuccess, RedriveFailure and
MessageMovedToParkingLot.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """The type of a Prometheus metric."""

    COUNTER = "counter"  # the sum over all processes, kept across restarts
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric of the service, with its names in Prometheus and CloudWatch.

    Attributes:
        name: the name in Prometheus, without suffixes such as `_total`.
        means: the help text in Prometheus.
        cloudwatch: the name in CloudWatch; empty: the metric is not published to CloudWatch.
        unit: the unit in CloudWatch.
    """

    name: str
    kind: Kind
    means: str
    labels: tuple[str, ...] = ()
    cloudwatch: str = ""
    unit: str = "Count"

    @property
    def exposed(self) -> tuple[str, ...]:
        """Return the names of the metric's samples in Prometheus, such as redrive_success_total."""
        match self.kind:
            case Kind.COUNTER:
                return (f"{self.name}_total",)
            case Kind.GAUGE:
                return (self.name,)
            case Kind.HISTOGRAM:
                return (f"{self.name}_bucket", f"{self.name}_sum", f"{self.name}_count")


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of a metric.

    `part`: for a histogram, a bucket's upper bound in seconds, `+Inf` or `sum`; empty for other metrics.
    """

    metric: Metric
    labels: tuple[str, ...]
    value: float
    part: str = ""


_DLQ, _TARGET = ("dlq",), ("target", "rate_class")

#: Counters of letters' events, by the event's name in the column `what` of the table `redrive_hourly_count`.
LETTER_COUNTERS: Final = {
    "captured": Metric("redrive_captured", Kind.COUNTER, "Messages captured from a DLQ.", _DLQ, "LettersCaptured"),
    "delivered": Metric("redrive_success", Kind.COUNTER, "Messages delivered.", _DLQ, "RedriveSuccess"),
    "failed": Metric("redrive_failure", Kind.COUNTER, "Attempts that failed.", _DLQ, "RedriveFailure"),
    "parked": Metric("redrive_parked", Kind.COUNTER, "Messages parked.", _DLQ, "MessageMovedToParkingLot"),
    "duplicate": Metric("redrive_duplicates", Kind.COUNTER, "Duplicates of delivered messages.", _DLQ, "Duplicates"),
    "discarded": Metric("redrive_discarded", Kind.COUNTER, "Messages discarded.", _DLQ, "LettersDiscarded"),
}

VISIBLE: Final = Metric(
    "redrive_dlq_visible_messages", Kind.GAUGE, "Visible messages, by the newest count of SQS.", _DLQ, "VisibleMessages"
)
IN_FLIGHT: Final = Metric(
    "redrive_dlq_messages_in_flight",
    Kind.GAUGE,
    "Messages in flight, including captured messages.",
    _DLQ,
    "MessagesInFlight",
)
LETTERS: Final = Metric(
    "redrive_letters", Kind.GAUGE, "Messages by state and parking reason.", ("dlq", "state", "reason")
)
UNFINISHED: Final = Metric(
    "redrive_unfinished_letters", Kind.GAUGE, "Messages captured and not finished.", _DLQ, "UnfinishedLetters"
)
PARKED: Final = Metric("redrive_parked_letters", Kind.GAUGE, "Messages in the parking lot.", _DLQ, "ParkedLetters")
OLDEST: Final = Metric(
    "redrive_oldest_letter_age_seconds", Kind.GAUGE, "Age of the oldest unfinished message.", _DLQ,
    "OldestLetterAge", "Seconds",
)  # fmt: skip
EXPIRY: Final = Metric(
    "redrive_time_to_expiry_seconds", Kind.GAUGE, "Time until SQS deletes the first unfinished message.", _DLQ,
    "TimeToExpiry", "Seconds",
)  # fmt: skip
STOPPED: Final = Metric("redrive_dlq_stopped", Kind.GAUGE, "1: sending is stopped for the DLQ.", _DLQ, "Stopped")
LAST_ERROR: Final = Metric(
    "redrive_dlq_last_error", Kind.GAUGE, "1: the last capture, or AWS's native redrive, failed.", _DLQ, "LastError"
)

BREAKER: Final = Metric(
    "redrive_breaker_state", Kind.GAUGE, "0: closed, 1: half open, 2: open.", _TARGET, "BreakerState", "None"
)
ALLOWED: Final = Metric(
    "redrive_allowed_rate", Kind.GAUGE, "Messages a second that may be sent now; +Inf: no limit.", _TARGET,
    "AllowedRate", "Count/Second",
)  # fmt: skip
UNSETTLED: Final = Metric(
    "redrive_unsettled_letters", Kind.GAUGE, "Messages sent whose outcome is not known yet.", ("target",),
    "UnsettledLetters",
)  # fmt: skip
ATTEMPTS: Final = Metric("redrive_attempts", Kind.COUNTER, "Attempts to send messages.", ("target",), "Attempts")

CAPTURES: Final = Metric("redrive_capture_seconds", Kind.HISTOGRAM, "Duration of captures.", _DLQ)
CAPTURE_ERRORS: Final = Metric(
    "redrive_capture_errors", Kind.COUNTER, "Captures that ended with an error.", _DLQ, "CaptureErrors"
)
SLICES: Final = Metric("redrive_slice_seconds", Kind.HISTOGRAM, "Duration of slices: tasks that send due messages.")
SLICE_ERRORS: Final = Metric(
    "redrive_slice_errors", Kind.COUNTER, "Failed slices. A slice is a task that sends due messages.", (), "SliceErrors"
)
THROTTLES: Final = Metric("redrive_throttles", Kind.COUNTER, "Requests that AWS throttled.", ("service",), "Throttles")

CONSUMED: Final = Metric(
    "redrive_seconds_since_consumption", Kind.GAUGE, "Seconds since a worker took a task of the service's own queue.",
    ("queue",), "SecondsSinceConsumption", "Seconds",
)  # fmt: skip
HALTED: Final = Metric("redrive_stopped", Kind.GAUGE, "1: everything is stopped.", (), "EverythingStopped")

#: All metrics that the service publishes.
METRICS: Final = (
    *LETTER_COUNTERS.values(),
    VISIBLE, IN_FLIGHT, LETTERS, UNFINISHED, PARKED, OLDEST, EXPIRY, STOPPED, LAST_ERROR,
    BREAKER, ALLOWED, UNSETTLED, ATTEMPTS,
    CAPTURES, CAPTURE_ERRORS, SLICES, SLICE_ERRORS, THROTTLES, CONSUMED, HALTED,
)  # fmt: skip

#: Upper bounds of the histograms' buckets in seconds. A slice (a task that sends due messages) takes 5 s, a
#: capture up to 150 s.
BUCKET_BOUNDS: Final = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 150.0)


def histogram_parts(seconds: float) -> dict[str, float]:
    """Return what one measured duration adds to each part of a Prometheus histogram, by the part's name.

    The part `+Inf`, and each bucket whose upper bound is at least `seconds`, get 1. The part `sum` gets `seconds`.
    """
    parts = {f"{bound:g}": 1.0 for bound in BUCKET_BOUNDS if seconds <= bound}
    return {**parts, "+Inf": 1.0, "sum": seconds}
