"""Whether a message succeeded, how that is known, and since when."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reprocessing.domain.lifecycle import AttemptOutcome, LetterState
from reprocessing.domain.outcomes.delivery_status import DeliveryFacts, OutcomeSource, status_of_letter

START = datetime(2026, 3, 1, 8, tzinfo=UTC)
SENT, TAKEN, DEADLINE, CLOSED, RETURNED, FINISHED, SAID = (START + timedelta(minutes=n) for n in range(7))


def facts(state: str, outcome: str | None = None, **other: Any) -> DeliveryFacts:  # noqa: ANN401  any of its fields
    """A letter whose newest attempt was accepted by its target."""
    values: dict[str, Any] = {
        "state": state, "presumed": False, "acknowledges": False, "watched": False, "outcome": outcome,
        "sent_at": SENT, "taken_at": TAKEN, "deadline": DEADLINE, "closed_at": CLOSED, "finished_at": FINISHED,
    }  # fmt: skip
    return DeliveryFacts(**{**values, **other})


YET = "Its outcome is not known yet: its target accepted it, and "
UNTIL = "until 2026-03-01 08:02:00 UTC"
PARKS = f"its consumer can report {UNTIL}; after that, it is parked."
SILENT = f"Its outcome is not known: its target accepted it, and its consumer could report {UNTIL}, but did not."
TAKEN_ONLY = "Its target accepted it. What the consumer did with it is not known."
PRESUMED = "It is presumed delivered: {}it has not come back to the DLQ, where a capture would have found it."


@pytest.mark.parametrize(
    ("given", "worked", "how", "sentence", "since"),
    [
        (facts("delivered", "accepted"), True, "accepted", TAKEN_ONLY, TAKEN),
        (facts("delivered", "absent", presumed=True), None, "presumed", PRESUMED.format(""), FINISHED),
        (
            facts("delivered", "absent", presumed=True, acknowledges=True),
            None, "presumed", PRESUMED.format("its consumer has not reported, but "), FINISHED,
        ),
        (
            facts("delivered", "acknowledged", said="delivered", said_at=SAID, said_by="shop"),
            True, "acknowledged", "It worked: its consumer (shop) reported success.", SAID,
        ),
        (facts("delivered", "acknowledged"), True, "acknowledged", "It worked: its consumer reported success.", CLOSED),
        (
            facts("delivered", "accepted", said="delivered", said_at=SAID),
            True, "acknowledged", "It worked: its consumer reported success.", SAID,
        ),
        (facts("sending", taken_at=None), None, "open", "Its outcome is not known yet: it is being sent.", SENT),
        (facts("awaiting"), None, "open", f"{YET}it may come back {UNTIL}.", TAKEN),
        (
            facts("awaiting", watched=True),
            None, "open", f"{YET}it may come back {UNTIL}, unless its target is found empty before that.", TAKEN,
        ),
        (facts("awaiting", acknowledges=True), None, "open", YET + PARKS, TAKEN),
        (
            facts("awaiting", acknowledges=True, watched=True, deadline=None),
            None, "open",
            f"{YET}its consumer can report; after that, it is presumed delivered if it does not come back.", TAKEN,
        ),
        (
            facts("waiting", "accepted", returned_at=RETURNED, said="delivered"),
            False, "failed", "It failed: it came back to a DLQ. It will be sent again.", RETURNED,
        ),
        (
            facts("parked", "failed", denied=True, said="failed", said_at=SAID, said_by="shop"),
            False, "failed", "It failed: its consumer (shop) reported a failure. It is parked for review.", SAID,
        ),
        (
            facts("waiting", "accepted", denied=True),
            False, "failed", "It failed: its consumer reported a failure. It will be sent again.", CLOSED,
        ),
        (
            facts("discarded", "refused"),
            False, "failed", "It failed: its target refused it. It was discarded.", CLOSED,
        ),
        (facts("parked", "silent"), None, "silent", f"{SILENT} It is parked for review.", CLOSED),
        (
            facts("waiting", "unknown"),
            None, "unknown",
            "Its outcome is not known: it may have been sent, and no answer came. It will be sent again.", CLOSED,
        ),
        (facts("waiting", sent_at=None), None, "unsent", "It has not been sent.", FINISHED),
        (
            facts("parked", sent_at=None),
            None, "unsent", "It has not been sent. It is parked for review.", FINISHED,
        ),
        (facts("duplicate"), None, "unsent", "It was not sent: an equal message was delivered.", FINISHED),
    ],
)  # fmt: skip
def test_what_is_known_of_a_letter(
    given: DeliveryFacts, worked: bool | None, how: str, sentence: str, since: datetime
) -> None:
    found = status_of_letter(given)
    assert (found.worked, found.how, found.sentence, found.since) == (worked, how, sentence, since)


@pytest.mark.parametrize("state", list(LetterState))
@pytest.mark.parametrize("outcome", [None, *AttemptOutcome])
@pytest.mark.parametrize("bare", [True, False])
def test_every_letter_has_a_status(state: LetterState, outcome: AttemptOutcome | None, bare: bool) -> None:
    times = ("sent_at", "taken_at", "deadline", "closed_at", "finished_at")
    found = status_of_letter(facts(state, outcome, **(dict.fromkeys(times) if bare else {})))
    assert found.how in OutcomeSource
    assert found.sentence.endswith(".")
