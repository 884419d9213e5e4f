"""Guards of the schema itself: what the rows may never say, whoever writes them."""

from __future__ import annotations

from typing import Final

from tests.proof.planted.bug import Bug

_TRIGGERS: Final = "reprocessing/migrations/0002_functions_and_triggers.py"
_TABLES: Final = "reprocessing/migrations/0001_tables.py"
_REFUSES: Final = "tests/reprocessing/models/test_constraints.py::test_each_constraint_refuses_its_violation"

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
        old='condition=models.Q(("holds_lane", True)), fields=("lane",), name="one_lane_holding_attempt_per_lane"',
        new='condition=models.Q(("holds_lane", None)), fields=("lane",), name="one_lane_holding_attempt_per_lane"',
        caught_by=_REFUSES,
    ),
    Bug(
        name="a-message-is-two-letters",
        breaks="A message of a dlq is one letter, however often it is received.",
        file=_TABLES,
        old='models.UniqueConstraint(fields=("dlq", "message_id"), name="one_letter_per_message")',
        new='models.UniqueConstraint(fields=("id", "dlq", "message_id"), name="one_letter_per_message")',
        caught_by=_REFUSES,
    ),
    Bug(
        name="a-guard-that-was-switched-off-is-well",
        breaks="The doctor names what was dropped or switched off by hand, triggers included.",
        file="reprocessing/store/maintenance/schema.py",
        old=" WHERE NOT t.tgisinternal AND t.tgenabled <> 'D' AND",
        new=" WHERE NOT t.tgisinternal AND",
        caught_by="tests/reprocessing/store/maintenance/test_schema.py::test_dropped_and_disabled_parts_are_named",
    ),
    Bug(
        name="a-source-goes-under-its-parked-letters",
        breaks="A source is taken away only where no unfinished and no parked letter goes back to it.",
        file="reprocessing/store/dlqs/source_queues.py",
        old="Q(finished_at=None) | Q(state=LetterState.PARKED), dlq=",
        new="Q(finished_at=None), dlq=",
        caught_by="tests/reprocessing/commands/dlqs/test_remove_source.py"
        "::test_one_that_an_unfinished_or_parked_letter_goes_back_to_is_refused",
    ),
)
