"""Guards of the schema itself: what the rows may never say, whoever writes them."""

from __future__ import annotations

from typing import Final

from tests.proof.planted.bug import Bug

_TRIGGERS: Final = "reprocessing/migrations/0002_what_postgres_sees_to.py"
_TABLES: Final = "reprocessing/migrations/0001_the_tables.py"
_REFUSES: Final = "tests/reprocessing/models/test_constraints.py::test_the_schema_refuses"

BUGS: Final = (
    Bug(
        name="history-is-rewritten",
        breaks="History is never rewritten: the trigger on attempts is gone.",
        file=_TRIGGERS,
        old="CREATE TRIGGER attempts_are_written_once BEFORE UPDATE ON redrive_attempt\n",
        new="CREATE TRIGGER attempts_are_written_once BEFORE DELETE ON redrive_attempt\n",
        caught_by="tests/reprocessing/models/test_triggers.py::test_a_column_of_an_attempt_is_written_once",
    ),
    Bug(
        name="payloads-change",
        breaks="Bytes are sacred: the trigger on payloads is gone.",
        file=_TRIGGERS,
        old="CREATE TRIGGER payloads_never_change BEFORE UPDATE ON redrive_payload\n",
        new="CREATE TRIGGER payloads_never_change BEFORE DELETE ON redrive_payload\n",
        caught_by="tests/reprocessing/models/test_triggers.py::test_the_bytes_of_a_letter_never_change",
    ),
    Bug(
        name="two-attempts-hold-a-lane",
        breaks="The schema refuses a second attempt that holds a lane.",
        file=_TABLES,
        old='condition=models.Q(("holds_lane", True)), fields=("lane",), name="one_attempt_holds_a_lane"',
        new='condition=models.Q(("holds_lane", None)), fields=("lane",), name="one_attempt_holds_a_lane"',
        caught_by=_REFUSES,
    ),
    Bug(
        name="a-message-is-two-letters",
        breaks="A message of a dlq is one letter, however often it is received.",
        file=_TABLES,
        old='models.UniqueConstraint(fields=("dlq", "message_id"), name="a_message_is_one_letter"),',
        new='models.UniqueConstraint(fields=("id", "dlq", "message_id"), name="a_message_is_one_letter"),',
        caught_by=_REFUSES,
    ),
)
