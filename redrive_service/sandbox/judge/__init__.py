"""An independent judge of a redrive: finds out from logs whether messages were lost, repeated, reordered, and so on.

The judge reads the call log of the local SQS and the consumer's log. These logs do not show which messages the service
has parked, closed as duplicates or not finished. So the judge also reads the service's own records of these messages.
The judge shares no code with the service.

`case` describes the experiment: a redrive and what it must not do. `log_reader` reads the logs into `evidence`.
`fates`, `sends`, `brakes` and `consumption` check the evidence. `verdict` combines their findings.
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
