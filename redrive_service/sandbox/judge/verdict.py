"""Make the judgement about a redrive: what became of every dead message, and every error that was found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from redrive_service.sandbox.judge import brakes, consumption, sends
from redrive_service.sandbox.judge.case import Experiment, ServiceRecords
from redrive_service.sandbox.judge.evidence import Evidence
from redrive_service.sandbox.judge.fates import fates, lost
from redrive_service.sandbox.judge.findings import Fate, Finding, Offence
from redrive_service.sandbox.judge.log_reader import read


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The result of the judge: what became of every dead message, errors of the redrive, and figures.

    Attributes:
        fates: what became of every dead message, by its message id in the DLQ.
        findings: all errors. If both logs show the same error of an event, it is listed once.
        sends: number of redrive sends that a queue accepted.
        returns: number of accepted redrive sends whose message went to a DLQ again.
        swallowed: number of accepted redrive sends that a FIFO queue dropped as duplicates.
        redelivered: number of messages that SQS delivered again after a success. This is not an error of the redrive.
        canaries: number of redrive sends while a circuit breaker was open.
    """

    fates: Mapping[str, Fate]
    findings: tuple[Finding, ...]
    sends: int
    returns: int
    swallowed: int
    redelivered: int
    canaries: int

    @property
    def clean(self) -> bool:
        """Return whether the judge found no error."""
        return not self.findings

    def found(self, offence: Offence) -> tuple[Finding, ...]:
        """Return all errors of one kind."""
        return tuple(finding for finding in self.findings if finding.offence is offence)

    def counts(self) -> dict[str, int]:
        """Return the numbers of messages, of each fate, of each kind of error and so on, by their names in JSON."""
        found = Counter(finding.offence for finding in self.findings)
        ended = Counter(self.fates.values())
        return {
            "letters": len(self.fates),
            **{fate.value: ended[fate] for fate in Fate},
            **{offence.value: found[offence] for offence in Offence},
            "sends": self.sends,
            "returns": self.returns,
            "swallowed": self.swallowed,
            "redelivered": self.redelivered,
            "canaries": self.canaries,
        }


def judge(
    experiment: Experiment,
    calls: Iterable[Mapping[str, Any]],
    consumed: Iterable[Mapping[str, Any]] | None = None,
    records: ServiceRecords | None = None,
) -> Judgement:
    """Check a redrive by the logs of queue and consumer.

    Args:
        experiment: the queues, the identity and order of messages, and the limits of the redrive.
        calls: the local SQS's complete call log, in order.
        consumed: the consumer's log: `message_id`, `started`, `ended` (seconds) and `outcome` ("ok" or "failed") of
            every processing. If it is None, there is no consumer, and a message that the queue accepted, and that did
            not come back, counts as delivered.
        records: the service's own records. By default, they have no message.

    Raises:
        LogIsIncomplete: calls are missing.
        MarkIsUnreadable: the attribute with redrive id and attempt number of a redriven message is not `ID:NUMBER`.
        SequenceIsNoNumber: the attribute that orders the messages of a lane is not a number.
    """
    records = records or ServiceRecords()
    evidence = read(experiment, calls, consumed)
    decided = fates(evidence, records)
    accepted = [send for event in evidence.events.values() for send in event.sends if send.message is not None]
    return Judgement(
        fates=decided,
        findings=(*lost(evidence, decided), *_offences(evidence, experiment, records)),
        sends=len(accepted),
        returns=sum(
            send.arrived and send.message is not None and send.message.dead_lettered is not None for send in accepted
        ),
        swallowed=sum(send.swallowed for send in accepted),
        redelivered=consumption.redelivered(evidence),
        canaries=brakes.canaries(evidence, records),
    )


def _offences(evidence: Evidence, experiment: Experiment, records: ServiceRecords) -> Iterator[Finding]:
    """Yield the errors of the redrive. An error that both logs show is listed once, from the call log."""
    for seen, heard in (
        (sends.too_many(evidence), consumption.processed_twice(evidence)),
        (sends.reordered(evidence, experiment, records), consumption.reordered(evidence, experiment, records)),
        (sends.overlapping(evidence, experiment), consumption.overlapping(evidence, experiment)),
    ):
        found = list(seen)
        known = {finding.event for finding in found}
        yield from found
        yield from (finding for finding in heard if finding.event not in known)
    yield from sends.too_fast(evidence, experiment)
    yield from sends.too_often(evidence, experiment, records)
    yield from brakes.too_many_canaries(evidence, experiment, records)
    yield from brakes.beside_the_first_wave(evidence, experiment)
    yield from sends.altered(evidence, experiment)
    yield from sends.astray(evidence)
