"""Everything outside a capability: schema, admin, commands, server, rows."""

from __future__ import annotations

from tests.proof.planted.bug import quoted

BUGS = quoted("""
@manage.py
@tests/redrive_service/test_startup.py
a-start-that-is-refused-names-a-program-that-may-not-be-there:
    test_a_database_that_does_not_answer_is_told_in_a_sentence
-        sys.exit(as_invoked(f"PostgreSQL cannot be used: {
+        sys.exit(str(f"PostgreSQL cannot be used: {

@redrive_service/sandbox/management/commands/sandbox.py
@tests/sandbox/test_command.py
the-demo-shows-commands-that-cannot-be-pasted: test_commands_are_shown_as_the_sandbox_was_invoked
-            self.stderr.write(as_invoked(message), style_func
+            self.stderr.write(message, style_func

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

@reprocessing/admin/editing/edit.py
@tests/reprocessing/admin/editing/test_edit.py
an-edit-is-confirmed-by-anybody: test_a_page_of_somebody_else_is_no_page
-    return found if (found["letter"], found["user"]) == (letter.pk, request.user.pk) else None
+    return found

@reprocessing/admin/messages/messages.py
@tests/reprocessing/admin/messages/test_message_page.py
whoever-sees-a-letter-sees-its-payload: test_who_may_not_see_payloads_is_told_so_and_refused
-        if not (self.has_view_permission(request) and message_page.may_see_payloads(request.user)):
+        if not self.has_view_permission(request):

@reprocessing/store/payloads/viewed_content.py
a-look-leaves-no-trace: test_a_payload_is_covered_until_somebody_who_may_see_it_asks_for_it
-    _record(letter, held.revision, by, why, revealed=revealed)
+

@reprocessing/gateways/sqs/batch_requests.py
@tests/reprocessing/gateways/sqs/test_sending.py
the-deadline-is-not-asked-for: test_nothing_goes_out_when_it_may_not
-        if not self._may_start():
+        if not self._may_start:
a-poison-letter-fails-its-batch: test_a_batch_refused_for_one_letter_is_halved_until_that_letter_stands_alone
-            if is_of_an_entry(error) and len(load) > 1:
+            if is_of_an_entry(error) and not load:
@tests/reprocessing/gateways/sqs/test_sending_kinds.py
a-group-goes-on-behind-its-failure: test_after_a_failure_no_later_request_carries_the_groups_next_letter
-            if self._sender.fifo and not isinstance(outcome, Taken):
+            if self._sender.fifo and outcome is None:

@reprocessing/gateways/sqs/batches.py
a-body-that-is-no-text-stops-its-batch: test_a_poison_letter_is_refused_for_good_and_its_batch_mates_are_taken
-    except UnicodeDecodeError:
-        return Refused(
+    except LookupError:
+        return Refused(

@reprocessing/gateways/sqs/received_handles.py
@tests/reprocessing/gateways/sqs/test_received_handles.py
an-id-left-out-is-gone: test_an_id_that_the_answer_leaves_out_is_not_gone
-    failed = dict.fromkeys((each for each in ids if each not in done), "
+    done |= set(ids) - {numbers[entry["Id"]] for entry in answer.get("Failed", [])}
+    failed = dict.fromkeys((each for each in ids if each not in done), "

@reprocessing/gateways/sqs/sending.py
@tests/reprocessing/gateways/sqs/test_sending.py
a-partial-failure-is-success: test_each_entry_of_a_batch_has_its_own_fate
-        return outcome_of_entry(failed.get("Code", ""), failed.get("Message", ""))
+        return Taken("")
an-id-left-out-is-taken: test_a_letter_that_the_answer_does_not_name_has_an_unknown_fate
-    return Unknown("the answer of SQS does not name it")
+    return Taken("")
another-digest-is-taken: test_a_letter_that_the_answer_does_not_name_has_an_unknown_fate
-md5(letter.message.body, usedforsecurity=False).hexdigest():
+md5(letter.message.body, usedforsecurity=False).hexdigest() and not entry:

@reprocessing/management/commands/drain_dlq.py
@tests/reprocessing/commands/runs/test_drain_dlq.py
a-dry-run-that-acts: test_a_dry_run_captures_and_plans_and_sends_nothing
-        acts = options["confirm"] and (wish == ALL_LETTERS or not outlook.is_empty)
+        acts = wish == ALL_LETTERS or not outlook.is_empty

@reprocessing/management/output/findings_output.py
@tests/reprocessing/commands/dlqs/test_add_dlq.py
a-dlq-and-its-source-queue-look-alike:
    test_a_dlq_and_its_source_queue_of_one_name_are_told_apart_and_both_are_written_down
-        yield f"  {one.label}.{key}: {
+        yield f"  {one.name}.{key}: {

@reprocessing/management/shared/drain_progress.py
@tests/reprocessing/commands/runs/test_why_attempts_fail.py
one-reason-is-told-once-for-due-lanes-and-once-for-the-others: test_what_holds_lanes_back_is_told_once_due_or_not
-            reasons[one.why] += one.n
+            reasons[one.why] = one.n

@reprocessing/management/shared/parking_selection.py
@tests/reprocessing/commands/parking_lot/test_release_parked.py
a-parked-message-looks-like-a-refused-release: test_a_dry_run_shows_counts_and_examples_and_releases_nothing
-            yield f"  {count:,} parked because: {
+            yield f"  {count:,} {reason}: {

@reprocessing/migrations/0001_tables.py
@tests/reprocessing/models/test_constraints.py
two-attempts-hold-a-lane: test_each_constraint_refuses_its_violation
-condition=models.Q(("holds_lane", True)),
+condition=models.Q(("holds_lane", None)),
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

@reprocessing/models/target.py
@tests/reprocessing/pipeline/replay/test_last_attempts.py
a-last-attempt-of-unknown-end-holds-nothing: test_the_next_letter_waits_while_the_copy_may_come_back
-        return self.proof != Proof.ACCEPTED and self.advance == Advance.SETTLED
+        return False

@reprocessing/store/rows.py
@tests/race/replay/test_deadlocks.py
a-deadlock-s-victim-gives-up: test_a_deadlock_s_victim_is_run_again_as_a_whole
-DEADLOCK_RETRIES = 8
+DEADLOCK_RETRIES = 0
@tests/reprocessing/store/test_rows.py
rows-in-error-messages: test_an_error_names_the_constraint_and_shows_no_row
-        if error.diag.message_detail is None:
+        if error.diag is not None:

@reprocessing/watchdog.py
@tests/reprocessing/test_watchdog.py
nobody-delivers-the-silence: test_workers_that_fall_silent_are_one_incident_that_the_others_deliver_and_conclude
-            start_delivery(view)
+            pass
""")
