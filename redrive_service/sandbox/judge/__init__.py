"""An independent judge of a redrive: compares the logs of the queue and of the consumer with the service's promises.

It reads the local SQS's call log, the consumer's log, and the service's records of messages that are parked, closed or
not finished: no log shows these. It shares no code with the service.

`case` describes the experiment, `log_reader` reads the logs into `evidence`, `fates`, `sends`, `brakes` and
`consumption` judge it, `verdict` combines their findings.
"""

from redrive_service.sandbox.judge.case import Advance, BreakerOpening, Experiment, ServiceRecords
from redrive_service.sandbox.judge.findings import Fate, Finding, Offence
from redrive_service.sandbox.judge.log_reader import LogIsIncomplete, MarkIsUnreadable, SequenceIsNoNumber
from redrive_service.sandbox.judge.verdict import Judgement, judge

__all__ = [
    "Advance",
    "BreakerOpening",
    "Experiment",
    "Fate",
    "Finding",
    "Judgement",
    "LogIsIncomplete",
    "MarkIsUnreadable",
    "Offence",
    "SequenceIsNoNumber",
    "ServiceRecords",
    "judge",
]  # fmt: skip
