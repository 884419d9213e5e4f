"""What people ask for: runs, dry runs, decisions and their record; rules."""

from __future__ import annotations

from tests.proof.planted.bug import quoted

BUGS = quoted("""
@redrive_service/server.py
@tests/redrive_service/test_server.py
what-the-kernel-has-queued-is-reset: test_a_request_that_waits_in_the_kernel_s_queue_is_answered_before_the_server_ends
-        self._listener.accept_queued()
+
half-a-request-is-cut-by-a-stop: test_a_request_that_arrives_while_the_server_ends_is_answered
- or (may_arrive and channel.is_expected())]
+]
half-a-request-holds-up-a-stop: test_a_request_that_does_not_become_whole_holds_up_no_end
- or (may_arrive and channel.is_expected())]
+ or channel.is_expected()]

@reprocessing/admin/dlqs/dlq_form.py
@tests/reprocessing/admin/dlqs/test_dlq_form.py
a-target-cannot-be-tried-for-ever: test_give_up_after_has_a_default_and_can_be_set_or_emptied
-{"give_up_after", "new_key_delay",
+{"new_key_delay",
the-admin-forgets-when-a-target-is-given-up: test_give_up_after_has_a_default_and_can_be_set_or_emptied
-"waves", "wave_success", "give_up_after", "role_arn", "held_copies_limit",
+"waves", "wave_success", "role_arn", "held_copies_limit",

@reprocessing/management/commands/drain_dlq.py
@tests/reprocessing/commands/runs/test_drain_dlq.py
a-dry-run-that-acts: test_a_dry_run_captures_and_plans_and_sends_nothing
-        if options["confirm"] and not refused and not interruption():
+        if not refused and not interruption():

@reprocessing/pipeline/capture/peek.py
@tests/reprocessing/commands/dlqs/test_peek_dlq.py
a-look-that-keeps-what-it-saw: test_what_is_looked_at_is_visible_again
-        back = release(address, {message.message_id: message.handle for message in found.values()})
+        back = release(address, {})

@reprocessing/pipeline/maintenance/recover.py
@tests/reprocessing/pipeline/parking_lot/test_parking_queue.py
what-was-read-long-ago-is-told: test_what_a_sweep_read_before_it_froze_is_not_told_after_what_came_later
-may_start=lambda: clock() < until)
+may_start=lambda: until > 0)

@reprocessing/pipeline/parking_lot/act_on_parked.py
@tests/reprocessing/pipeline/parking_lot/test_act_on_parked.py
a-deed-without-its-record: test_who_decided_and_why_is_recorded_with_the_deed
-decisions.record_decisions(able, deed.act, was=was, by=by, reason=reason, operation=operation)
+decisions.record_decisions([], deed.act, was=was, by=by, reason=reason, operation=operation)
a-deed-in-another-transaction: test_what_cannot_be_recorded_is_not_done
-    return rows.in_transaction(decide)
+    return decide()
a-decision-of-nobody: test_nobody_decides_without_a_name_and_a_reason
-    if not by.strip() or not reason.strip():
+    if not by and not reason:

@reprocessing/pipeline/replay/gate.py
@tests/reprocessing/pipeline/replay/test_gate.py
discarded-twins-go: test_a_twin_of_a_discarded_letter_is_parked
-            return _copy_of_twin(standing) if standing.released else Park(ParkedReason.TWIN_DISCARDED)
+            return Park(ParkedReason.TWIN_DISCARDED) if standing.released else None
conflicts-are-duplicates: test_an_equal_key_with_another_body_is_a_conflict
-        case ClaimState.DELIVERED if standing.claim_same_body:
+        case ClaimState.DELIVERED:

@reprocessing/pipeline/runs/drain.py
@tests/reprocessing/pipeline/runs/test_drain.py
any-selection-under-a-run-s-id: test_another_selection_under_the_same_id_is_refused
-    if run.dlq_id != dlq.pk or not same:
+    if run.dlq_id != dlq.pk:
a-dry-run-that-deletes: test_collecting_sends_parks_and_discards_nothing
-    plan.place_captured(dlq)
-    return captured
+    plan.place_captured(dlq)
+    from reprocessing.models import DlqCopy
+    from reprocessing.store.replay.settlement import Deletable
+    from reprocessing.pipeline.capture import delete_copies
+
+    copies = DlqCopy.objects.filter(dlq=dlq, state="held")
+    held = [Deletable(dlq.pk, copy.message_id, copy.handle) for copy in copies]
+    delete_copies.delete_from_dlq(dlq, held)
+    return captured

@reprocessing/pipeline/runs/plan.py
@tests/reprocessing/pipeline/safety/test_switched_off_meanwhile.py
a-dlq-that-was-switched-off-is-fed: test_a_dlq_that_becomes_manual_before_the_enlistment_enlists_nothing
-        if run.kind == RunKind.STANDING and not enlistment_batches.takes_letters(run.pk):
+        if run.kind == RunKind.STANDING and not run.pk:

@reprocessing/store/ordering/lanes.py
@tests/reprocessing/pipeline/routing/test_route.py
a-rule-that-errs-lets-go: test_a_rule_that_fails_holds_only_that_letter
-coalesce(h.route IN ('hold', 'erred') AND
+coalesce(h.route IN ('hold') AND

@reprocessing/store/parking_lot/decisions.py
@tests/reprocessing/pipeline/parking_lot/test_act_on_parked.py
a-discard-takes-its-twin-s-key: test_a_discarded_letter_leaves_the_key_to_its_twin_that_is_under_way
- OR (c.state = 'held' AND c.letter_id = excluded.letter_id)
-)
-SELECT
+ OR c.state = 'held'
+)
+SELECT

@reprocessing/store/parking_lot/restore_discarded.py
a-restore-frees-what-was-delivered: test_a_restored_letter_leaves_a_key_that_says_something_else_than_its_discard
- AND c.letter_id = m.id
-       AND c.state = 'discarded'
+ AND c.letter_id = m.id

@reprocessing/store/routing/routing_decisions.py
@tests/reprocessing/pipeline/routing/test_route.py
an-older-book-is-written: test_decisions_of_an_old_book_are_not_written
-       AND coalesce((SELECT version FROM redrive_rulebook WHERE id = 1), 0) = %(version)b
-     ORDER BY l.id FOR UPDATE OF l
+       AND %(version)b IS NOT NULL
+     ORDER BY l.id FOR UPDATE OF l
a-rule-that-is-lifted-keeps-what-waits-for-an-unwell-target: test_a_letter_diverted_to_an_unhealthy_target_returns
- OR target_id IN ({UNWELL})
+
earlier-tools-have-had-the-delay: test_a_letter_that_only_earlier_tools_tried_is_delayed
-l.attempts + l.not_sent > l.earlier, false) AS had
+l.attempts + l.not_sent > 0, false) AS had

@reprocessing/store/rows.py
@tests/race/test_deadlocks.py
a-deadlock-s-victim-gives-up: test_a_deadlock_s_victim_is_run_again_as_a_whole
-DEADLOCK_RETRIES = 8
+DEADLOCK_RETRIES = 0
@tests/reprocessing/store/test_rows.py
rows-in-error-messages: test_an_error_names_the_constraint_and_shows_no_row
-        if error.diag.message_detail is None:
+        if error.diag is not None:

@reprocessing/store/runs/leftover_lanes.py
@tests/reprocessing/pipeline/safety/test_switched_off_meanwhile.py
what-ended-runs-left-goes-though-it-was-switched-off: test_a_dlq_that_becomes_manual_stops_the_adoption_of_lanes
- AND r.kind = 'standing' AND d.mode = 'automatic')
+ AND r.kind = 'standing')

@reprocessing/store/runs/plans.py
@tests/reprocessing/store/runs/test_run_transitions.py
a-plan-is-selected-again: test_planning_again_changes_nothing
- WHERE id = %(run)b AND state = 'planned' AND selected IS NULL FOR NO KEY UPDATE
+ WHERE id = %(run)b AND state = 'planned' FOR NO KEY UPDATE

@reprocessing/store/safety/stops.py
@tests/reprocessing/commands/runs/test_stopping.py
a-stop-without-its-record: test_of_many_at_once_one_stops_and_the_others_hear_of_it
-jsonb_build_object('stopped', true) || {{after}}
-      FROM stopped
+jsonb_build_object('stopped', true) || {{after}}
+      FROM stopped WHERE false
""")
