"""Make the judgement: what became of every letter, and every promise that was broken."""

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
    """The result of the judge: the fate of every letter, broken promises, and figures.

    Attributes:
        fates: the fate of every letter, by its message id in the dlq.
        findings: every broken promise; an event that was sent too often and also processed twice is listed once.
        sends: redrive sends that a queue accepted.
        returns: accepted redrive sends whose message went to a dlq again.
        swallowed: accepted redrive sends that a FIFO queue dropped as duplicates.
        redelivered: messages that the queue delivered again after a success, which is no broken promise.
        canaries: redrive sends while a breaker was open.
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
        """Return whether every promise was kept."""
        return not self.findings

    def found(self, offence: Offence) -> tuple[Finding, ...]:
        """Return the findings of one offence."""
        return tuple(finding for finding in self.findings if finding.offence is offence)

    def counts(self) -> dict[str, int]:
        """Return all figures for JSON, by name: letters, each fate, each offence, and so on. Zeros are included."""
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
    """Judge a redrive by the logs of queue and consumer.

    Args:
        experiment: the queues, the identity and order of letters, and the promises.
        calls: the local SQS's complete call log, in order.
        consumed: the consumer's log: `message_id`, `started`, `ended` (seconds) and `outcome` ("ok" or "failed") of
            every processing. None: no consumer; a message that the queue accepted counts as delivered.
        records: the service's own records; default: no letter is in them.

    Raises:
        LogIsIncomplete: calls are missing.
        MarkIsUnreadable: the attribute that marks a redriven message is not `ID:NUMBER`.
        SequenceIsNoNumber: the sequence of a lane's letter is not a number.
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
    """Yield the broken promises. A finding that both logs show is listed once, from the call log."""
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
