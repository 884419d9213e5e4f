"""Parked messages, decisions and edits, failure groups."""

from __future__ import annotations

from tests.proof.planted.bug import quoted

BUGS = quoted("""
@reprocessing/pipeline/parking_lot/act_on_parked.py
@tests/reprocessing/pipeline/parking_lot/test_act_on_parked.py
an-action-without-its-record: test_who_decided_and_why_is_recorded_with_the_action
-decisions.record_decisions(able, act, was=was, by=by, reason=reason, operation=operation)
+decisions.record_decisions([], act, was=was, by=by, reason=reason, operation=operation)
an-action-in-another-transaction: test_what_cannot_be_recorded_is_not_done
-    return rows.in_transaction(decide)
+    return decide()
a-decision-of-nobody: test_nobody_decides_without_a_name_and_a_reason
-    if not by.strip() or not reason.strip():
+    if not by and not reason:

@reprocessing/pipeline/parking_lot/edit.py
@tests/reprocessing/pipeline/parking_lot/test_edit.py
whatever-is-parked-is-edited: test_of_two_who_saw_the_same_letter_one_edits_it_and_the_other_is_told
-== (LetterState.PARKED, seen.finished_at, seen.revision)
+== (LetterState.PARKED, seen.finished_at, stand.revision)

@reprocessing/store/parking_lot/decisions.py
@tests/reprocessing/pipeline/parking_lot/test_act_on_parked.py
a-discard-takes-its-equal-s-key: test_a_discarded_letter_leaves_the_key_to_its_equal_that_is_under_way
- OR (c.state = 'held' AND c.letter_id = excluded.letter_id)
-)
-SELECT
+ OR c.state = 'held'
+)
+SELECT
@tests/reprocessing/pipeline/replay/test_last_attempts.py
a-discard-leaves-the-key-of-what-is-on-its-way: test_a_discard_keeps_its_key_while_a_copy_may_come_back
-     WHERE c.state = 'free' OR (c.state = 'held' AND c.letter_id = excluded.letter_id)
+     WHERE c.state = 'free'

@reprocessing/store/parking_lot/failure_groups.py
@tests/reprocessing/store/notifications/test_group_events.py
a-group-that-is-there-is-told-as-new: test_grouping_into_existing_groups_runs_five_statements
-for group in put if group.new and (
+for group in put if (

@reprocessing/store/parking_lot/message_edits.py
@tests/reprocessing/pipeline/parking_lot/test_edit.py
an-edited-letter-goes-where-it-would-have-gone: test_rules_are_asked_about_what_will_be_sent
-CASE WHEN l.rulebook_version < {BY_HAND} THEN 0 ELSE l.rulebook_version END
+l.rulebook_version
an-edit-keeps-its-epoch: test_a_fifo_queue_takes_what_was_edited_though_it_may_have_had_the_letter_before
-epoch = l.epoch + 1,
+epoch = l.epoch,

@reprocessing/store/parking_lot/restore_discarded.py
@tests/reprocessing/pipeline/parking_lot/test_act_on_parked.py
a-restore-frees-what-was-delivered: test_a_restored_letter_leaves_a_key_that_says_something_else_than_its_discard
- AND c.letter_id = m.id
-       AND c.state = 'discarded'
+ AND c.letter_id = m.id
@tests/reprocessing/pipeline/replay/test_last_attempts.py
a-restore-frees-the-key-of-what-is-on-its-way: test_a_restored_letter_keeps_its_key_while_a_copy_may_come_back
-CASE WHEN m.until IS NULL THEN 'free' ELSE 'held' END
+'free'
@tests/reprocessing/pipeline/replay/test_equal_letters_of_an_unknown_copy.py
a-discard-taken-back-frees-its-key: test_a_restored_letter_keeps_its_key
-greatest({COPY_UNTIL}, (
+greatest(NULL::timestamptz, (
""")
