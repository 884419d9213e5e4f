"""Selection, plans, enlistment, progress."""

from __future__ import annotations

from tests.proof.planted.bug import quoted

BUGS = quoted("""
@reprocessing/management/commands/drain_dlq.py
@tests/reprocessing/commands/runs/test_drain_dlq.py
a-selection-also-sends-what-ended-runs-left:
    test_messages_of_an_aborted_run_are_sent_with_selected_ones_only_after_a_plan_was_shown
-    if wish != ALL_LETTERS and outlook.prospect.returned:
+    if wish == ALL_LETTERS and outlook.prospect.returned:
a-selection-of-nothing-replaces-the-plan: test_a_filter_that_no_message_matches_keeps_the_plan_of_before
-        if wish.conditions and not (selection.has_match(dlq.pk, wish) or interruption()):
+        if wish.conditions and interruption():

@reprocessing/domain/runs/forecast.py
@tests/reprocessing/domain/runs/test_forecast.py
outcomes-take-no-time: test_when_only_so_many_letters_may_wait_for_outcomes_each_group_waits_for_those_of_the_one_before
-        groups = (letters - 1) // room if room and letters else 0
+        groups = 0

@reprocessing/pipeline/runs/drain.py
@tests/reprocessing/pipeline/runs/test_drain.py
any-selection-under-a-run-s-id: test_another_selection_under_the_same_id_is_refused
-    if run.dlq_id != dlq.pk or not same:
+    if run.dlq_id != dlq.pk:
a-dry-run-that-deletes: test_collecting_sends_parks_and_discards_nothing
-    plan.place_captured(dlq, stop=context.stop)
-    return captured
+    plan.place_captured(dlq, stop=context.stop)
+    from reprocessing.models import DlqCopy
+    from reprocessing.store.replay.settlement import Deletable
+    from reprocessing.pipeline.capture import delete_copies
+
+    copies = DlqCopy.objects.filter(dlq=dlq, state="held")
+    held = [Deletable(dlq.pk, copy.message_id, copy.handle) for copy in copies]
+    delete_copies.delete_from_dlq(dlq, held)
+    return captured

@reprocessing/pipeline/runs/feed_run.py
@tests/race/capture/test_captures.py
what-is-being-captured-goes: test_letters_of_an_unfinished_capture_are_enlisted_when_it_has_run_dry
-        return plan.enlist(dlq, run, through=through, s
+        del through
+        return plan.enlist(dlq, run, s
@tests/reprocessing/pipeline/capture/test_another_reader.py
hidden-from-when-it-was-noted: test_a_copy_visible_again_after_a_freeze_hides_no_return
-    capture_lease.mark_extended(dlq.pk, [copy for copy in perhaps if copy.message_id in hidden], until=until)
+    until = lanes.database_now() + timedelta(seconds=conf.receive_visibility)
+    capture_lease.mark_extended(dlq.pk, [copy for copy in perhaps if copy.message_id in hidden], until=until)
another-reader-hides-nothing: test_no_absence_while_another_reader_hides_a_return
-in_flight <= capture_lease.count_invisible(
+in_flight >= 0 * capture_lease.count_invisible(
a-reader-is-looked-for-before-the-lease: test_copies_hidden_after_the_count_hide_no_return
-            alone=lambda: is_ours_alone(dlq, conf),
+            alone=(lambda said: lambda: said)(is_ours_alone(dlq, conf)),
copies-are-hidden-without-a-word-of-sqs: test_a_copy_deleted_by_somebody_else_hides_no_return
-    capture_lease.mark_extended(dlq.pk, [copy for copy in perhaps if copy.message_id in hidden], until=until)
-    return bool(hidden)
+    capture_lease.mark_extended(dlq.pk, perhaps, until=until)
+    return True
@tests/reprocessing/pipeline/runs/test_feed_run.py
enlisted-before-the-dlq-ran-dry: test_nothing_is_enlisted_before_the_dlq_has_run_dry
-        if dlq.mode == Mode.AUTOMATIC and gathered.captured.drained:
+        if dlq.mode == Mode.AUTOMATIC:

@reprocessing/pipeline/runs/plan.py
@tests/reprocessing/pipeline/runs/test_plan.py
enlisted-in-parts: test_enlisting_is_all_or_nothing
-        return enlistment.enlist_letters(dlq.pk, run.pk)
-
-    return rows.in_transaction(work)
+        return enlistment.enlist_letters(dlq.pk, run.pk)
+
+    return work()
@tests/reprocessing/pipeline/safety/test_switched_off_meanwhile.py
a-dlq-that-was-switched-off-is-fed: test_a_dlq_that_becomes_manual_before_the_enlistment_enlists_nothing
-        if run.kind == RunKind.AUTOMATIC and not enlistment_batches.takes_letters(run.pk):
+        if run.kind == RunKind.AUTOMATIC and not run.pk:

@reprocessing/store/runs/enlistment.py
@tests/race/runs/test_enlistment.py
enlisted-beside-whoever-moves-the-lanes:
    test_lanes_are_locked_in_the_order_of_their_ids_whatever_order_their_letters_failed_in
-    rows.execute(steps.lock_lanes, values)
+
@tests/reprocessing/pipeline/replay/test_precedence.py
an-earlier-letter-waits-for-the-later-one: test_an_earlier_letter_does_not_wait_for_a_paused_run_of_a_later_one
-    new_heads.move_to_new_heads(found.ahead)
+
@tests/reprocessing/pipeline/runs/test_plan.py
fresh-lanes-keep-no-quiet: test_a_fresh_lane_of_a_key_keeps_quiet_and_a_single_one_does_not
-       CASE WHEN bool_and(l.single) THEN redrive_now()
+       CASE WHEN true THEN redrive_now()
@tests/reprocessing/store/runs/test_run_transitions.py
a-plan-that-died-keeps-its-lanes: test_the_next_run_adopts_what_a_plan_adopted_whose_start_crashed
-(SELECT h.state FROM redrive_run h WHERE h.id = %(run)b) = 'running'
+false
@tests/reprocessing/store/test_ended_runs.py
every-lane-is-locked-after-because-other-runs-have-ended:
    test_ended_runs_do_not_make_an_enlistment_read_the_lanes_of_the_running_one
-{RUN_LEAVES_LETTERS} AND {_HAS_LANES}))
+{RUN_LEAVES_LETTERS}))
every-lane-is-read-because-other-runs-have-ended:
    test_ended_runs_do_not_make_an_enlistment_read_the_lanes_of_the_running_one
-{RUN_LEAVES_LETTERS} AND {_HAS_LANES} AND n.run_id = r.id
+{RUN_LEAVES_LETTERS} AND n.run_id = r.id
@tests/reprocessing/store/test_hot_path.py
every-letter-is-read-because-other-runs-have-ended (alone): test_the_reads_of_a_statement_do_not_grow_with_the_run
-'awaiting') OFFSET 0) x
+'awaiting')) x

@reprocessing/store/runs/leftover_lanes.py
@tests/reprocessing/pipeline/safety/test_switched_off_meanwhile.py
what-ended-runs-left-goes-though-it-was-switched-off: test_a_dlq_that_becomes_manual_stops_the_adoption_of_lanes
- AND r.kind = 'automatic' AND d.mode = 'automatic')
+ AND r.kind = 'automatic')

@reprocessing/store/runs/plans.py
@tests/reprocessing/store/runs/test_run_transitions.py
a-plan-is-selected-again: test_planning_again_changes_nothing
- WHERE id = %(run)b AND state = 'planned' AND selected IS NULL FOR NO KEY UPDATE
+ WHERE id = %(run)b AND state = 'planned' FOR NO KEY UPDATE

@reprocessing/store/runs/progress.py
@tests/reprocessing/store/notifications/test_run_events.py
a-run-finishes-in-silence: test_a_finished_run_is_announced_once_with_its_counts
-        announce_finished(finished)
+

@reprocessing/store/runs/run_transitions.py
a-resumed-run-stays-an-incident: test_a_run_that_pauses_itself_is_announced_once_and_concluded_when_resumed
-        conclude_standstills([run])
+        pass

@reprocessing/store/runs/selection.py
@tests/race/runs/test_enlistment.py
plans-take-no-turns: test_of_two_plans_at_once_neither_has_letters_behind_those_of_the_other
-    lock_selection(dlq)
-    return rows.fetch(SelectedCount
+    return rows.fetch(SelectedCount
@tests/reprocessing/store/runs/test_selection.py
a-selection-waits-for-another-source-s-key: test_equal_keys_of_two_sources_are_two_lanes
-PARTITION BY source_id, lane ORDER BY sequence, message_id) AS leads,
+PARTITION BY lane ORDER BY sequence, message_id) AS leads,
a-selection-dates-lanes-by-another-source-s-key: test_equal_keys_of_two_sources_are_two_lanes
-min(first_sent_at) OVER (PARTITION BY source_id, lane) AS first
+min(first_sent_at) OVER (PARTITION BY lane) AS first
an-instalment-waits-for-another-source-s-key: test_equal_keys_of_two_sources_are_two_lanes
-l.source_id = n.source_id AND l.key_hash = n.key_hash
+l.key_hash = n.key_hash
an-instalment-overtakes: test_free_letters_are_locked_only_with_every_letter_before_them
-            WHERE m.message_id IS NULL))
+            ))
""")
