"""Workers' turns that stop between two steps: the conductor's own, halted where letters would go to the wire."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from reprocessing.domain.replay.verdicts import Outcome
from reprocessing.pipeline.replay import replay_slice, send_batches
from reprocessing.pipeline.replay.send import Sender
from reprocessing.store.replay.intent import IntendedSend
from tests.proof.machine.ground import Ground


class _Halted(Exception):
    """The intent is committed, and nothing is on the wire yet."""


def fresh(ground: Ground, serial: int) -> replay_slice.Slice:
    return replay_slice.Slice(owner=f"turn-{serial}", conf=ground.policy.conf, rates=ground.rates, dice=lambda: 0.0)


@dataclass(slots=True)
class Turn:
    """One turn that goes on step by step; forgotten between two of them, it has died.

    Attributes:
        leases: lanes with the fences they were leased under.
        intended: what is committed to the wire.
        outcomes: what the wire said.
    """

    slice: replay_slice.Slice
    leases: dict[int, int] = field(default_factory=dict)
    intended: Sequence[IntendedSend] = ()
    outcomes: Mapping[int, Outcome] = field(default_factory=dict)
    has_sent: bool = False
    _post: Callable[[], dict[int, Outcome]] | None = None

    def __repr__(self) -> str:
        return self.slice.owner

    def lease(self) -> bool:
        """Take due lanes; whether there were any."""
        self.slice._wire = Sender(self.slice.conf, self.slice.dice)
        self.slice._wire.end()  # no slow targets here
        return self._has(self.slice._fill())

    def intend(self) -> bool:
        """Through rules, gate and intent; whether anything may go to the wire."""

        def halt(intended: Sequence[IntendedSend], *rest: Any, **options: Any) -> dict[int, Outcome]:  # noqa: ANN401
            self.intended = intended
            self._post = lambda: send_batches.letters(intended, *rest, **options)
            raise _Halted

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(send_batches, "letters", halt)
            for _ in range(8):  # closed heads make room for the next
                if not self.slice._lane_states:
                    return False
                try:
                    self.slice._round()
                except _Halted:
                    return True
        return False

    def send(self) -> None:
        self.has_sent = True
        if self._post:
            self.outcomes = self._post()

    def settle(self) -> bool:
        """Record what became of it; whether the turn has lanes to go on with."""
        wire = self.slice._wire
        self.slice._remember(wire._settle(self.intended, self.outcomes))
        wire.deletion.finish()
        self.intended, self.outcomes, self.has_sent = (), {}, False
        return self._has(bool(self.slice._lane_states))

    def _has(self, something: bool) -> bool:
        self.leases = {one.lane_id: one.fence for one in self.slice._lane_states.values()}
        return something
