"""What came of a planted bug, written down and told."""

from __future__ import annotations

from tests.proof.ledger import Ledger
from tests.proof.planted.bug import Bug
from tests.proof.planted.stage import Ran

LAYER = "planted"
AGAIN = ".venv/bin/python -m tests.proof.planted"


def noted(ledger: Ledger, bug: Bug, ran: Ran) -> str:
    why = ran.trouble or ("" if ran.noticed else f"{bug.caught_by} passes all the same")
    again = f"{why} Again: {AGAIN} {bug.name}" if why else ""
    ledger.note(LAYER, bug.name, passed=ran.noticed, why=again, seconds=round(ran.seconds, 1))
    return next(iter(ran.failed.values()), "") if ran.noticed else f"NOT NOTICED: {why}"
