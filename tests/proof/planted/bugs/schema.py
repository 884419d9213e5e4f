"""Guards of the schema itself: what the rows may never say, whoever writes them."""

from __future__ import annotations

from tests.proof.planted.bug import quoted

BUGS = quoted("""
@reprocessing/migrations/0001_tables.py
@tests/reprocessing/models/test_constraints.py
two-attempts-hold-a-lane: test_each_constraint_refuses_its_violation
-condition=models.Q(("holds_lane", True)), fields=("lane",), name="one_lane_holding_attempt_per_lane"
+condition=models.Q(("holds_lane", None)), fields=("lane",), name="one_lane_holding_attempt_per_lane"
a-message-is-two-letters: test_each_constraint_refuses_its_violation
-models.UniqueConstraint(fields=("dlq", "message_id"), name="one_letter_per_message")
+models.UniqueConstraint(fields=("id", "dlq", "message_id"), name="one_letter_per_message")

@reprocessing/migrations/0002_functions_and_triggers.py
@tests/reprocessing/models/test_triggers.py
history-is-rewritten: test_a_column_of_an_attempt_is_written_once
-CREATE TRIGGER attempts_are_written_once BEFORE UPDATE ON redrive_attempt
+CREATE TRIGGER attempts_are_written_once BEFORE DELETE ON redrive_attempt
payloads-change: test_the_bytes_of_a_letter_never_change
-CREATE TRIGGER payloads_never_change BEFORE UPDATE ON redrive_payload
+CREATE TRIGGER payloads_never_change BEFORE DELETE ON redrive_payload

@reprocessing/store/dlqs/source_queues.py
@tests/reprocessing/commands/dlqs/test_remove_source.py
a-source-goes-under-its-parked-letters: test_one_that_an_unfinished_or_parked_letter_goes_back_to_is_refused
-Q(finished_at=None) | Q(state=LetterState.PARKED), dlq=
+Q(finished_at=None), dlq=

@reprocessing/store/maintenance/schema.py
@tests/reprocessing/store/maintenance/test_schema.py
a-guard-that-was-switched-off-is-well: test_dropped_and_disabled_parts_are_named
- WHERE NOT t.tgisinternal AND t.tgenabled <> 'D' AND
+ WHERE NOT t.tgisinternal AND
""")
