"""Send batches of letters, in order per message group. A batch refused for one letter is halved and sent again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic

from reprocessing.domain.replay.verdicts import NotSent, Outcome, Taken
from reprocessing.gateways.aws.errors import is_of_an_entry, outcome_of
from reprocessing.gateways.aws.request_threads import run_in_parallel
from reprocessing.gateways.sqs.batches import Packed

Outcomes = dict[int, Outcome]
#: A function that sends letters in one request, and returns their outcomes in the same order. It may raise boto3's
#: errors.
SendBatch = Callable[[list[Packed]], Sequence[Outcome]]


@dataclass(frozen=True, slots=True)
class BatchSender(Generic[Packed]):
    """How batches are sent to one target.

    Attributes:
        ask: the function that sends one batch.
        service: the name of the AWS service, for texts that people read.
        fifo: whether letters have message groups. If a letter is not accepted, no later letter of its group is sent.
    """

    ask: SendBatch[Packed]
    service: str
    fifo: bool


def send_chains(
    chains: Sequence[Sequence[list[Packed]]],
    sender: BatchSender[Packed],
    *,
    may_start: Callable[[], bool],
    threads: int,
) -> Outcomes:
    """Send chains of batches, and return the outcomes by attempt id.

    The batches of one chain are sent one after another; different chains are sent in parallel.

    Args:
        chains: the result of `batches.batch_chains`.
        sender: how batches are sent.
        may_start: called before every request, by several threads. If it returns False, the letters are NotSent.
        threads: the most requests at a time.
    """
    outcomes: Outcomes = {}

    def run_chain(chain: Iterable[list[Packed]]) -> Outcomes:
        return _ChainSender(sender, may_start).make(chain)

    for some in run_in_parallel(run_chain, chains, threads):
        outcomes |= some
    return outcomes


class _ChainSender(Generic[Packed]):
    """Sends the batches of one chain, one after another."""

    def __init__(self, sender: BatchSender[Packed], may_start: Callable[[], bool]) -> None:
        self._sender = sender
        self._may_start = may_start
        self._stopped: set[str | None] = set()
        self._outcomes: Outcomes = {}

    def make(self, chain: Iterable[list[Packed]]) -> Outcomes:
        for load in chain:
            self._deliver(load)
        return self._outcomes

    def _deliver(self, load: list[Packed]) -> None:
        load = self._without_stopped_groups(load)
        if not load:
            return
        if not self._may_start():
            self._record(load, [NotSent("no time was left to begin its request")] * len(load))
            return
        try:
            outcomes = self._sender.ask(load)
        except Exception as error:  # noqa: BLE001  the outcomes of other requests must not be lost
            if is_of_an_entry(error) and len(load) > 1:
                self._deliver(load[: len(load) // 2])
                self._deliver(load[len(load) // 2 :])
            else:
                self._record(load, [outcome_of(error, self._sender.service)] * len(load))
        else:
            self._record(load, outcomes)

    def _without_stopped_groups(self, load: list[Packed]) -> list[Packed]:
        if not self._stopped:
            return load
        kept = []
        for letter in load:
            if letter.group in self._stopped:
                self._outcomes[letter.attempt] = NotSent("an earlier message of its group was not accepted")
            else:
                kept.append(letter)
        return kept

    def _record(self, load: list[Packed], outcomes: Sequence[Outcome]) -> None:
        for letter, outcome in zip(load, outcomes, strict=True):
            self._outcomes[letter.attempt] = outcome
            if self._sender.fifo and not isinstance(outcome, Taken):
                self._stopped.add(letter.group)
