"""What people are told: who redrives a DLQ, why attempts fail, and what a value or a command is of."""

from __future__ import annotations

from tests.proof.planted.bug import quoted

BUGS = quoted("""
@manage.py
@tests/redrive_service/test_startup.py
a-start-that-is-refused-names-a-program-that-may-not-be-there:
    test_what_can_be_tried_without_an_environment_is_named_as_this_process_was_invoked
-        sys.exit(as_invoked(f"{error}"))
+        sys.exit(f"{error}")

@redrive_service/sandbox/management/commands/sandbox.py
@tests/sandbox/test_command.py
the-demo-shows-commands-that-cannot-be-pasted: test_commands_are_shown_as_the_sandbox_was_invoked
-            self.stderr.write(as_invoked(message))
+            self.stderr.write(message)

@reprocessing/domain/outcomes/failed_answers.py
@tests/reprocessing/commands/runs/test_why_attempts_fail.py
a-refusal-is-quoted-on-the-screen:
    test_the_most_frequent_answer_is_told_with_its_status_and_nothing_that_was_written_beside_it
-        return _coded(said) if _CODE.fullmatch(said) else "
+        return _coded(said) if said else "

@reprocessing/management/output/findings_output.py
@tests/reprocessing/commands/dlqs/test_add_dlq.py
a-dlq-and-its-source-queue-look-alike:
    test_a_dlq_and_its_source_queue_of_one_name_are_told_apart_and_both_are_written_down
-        yield f"  {one.label}.{one.field}: {
+        yield f"  {one.name}.{one.field}: {

@reprocessing/management/shared/drain_progress.py
@tests/reprocessing/commands/runs/test_why_attempts_fail.py
one-reason-is-told-once-for-due-lanes-and-once-for-the-others: test_what_holds_lanes_back_is_told_once_due_or_not
-            reasons[one.why] += one.n
+            reasons[one.why] = one.n

@reprocessing/management/shared/parking_command.py
@tests/reprocessing/commands/parking_lot/test_release_parked.py
a-parked-message-looks-like-a-refused-release: test_a_dry_run_shows_counts_and_examples_and_releases_nothing
-            yield f"  {count:,} parked because: {
+            yield f"  {count:,} {reason}: {

@reprocessing/pipeline/dlqs/examine/targets.py
@tests/reprocessing/commands/targets/test_add_target.py
a-listed-address-is-said-to-be-forbidden: test_an_endpoint_without_tls_that_is_listed_is_said_to_be_allowed_and_by_what
-    if not isinstance(found.host, str):
+    if isinstance(found.host, bytes):

@reprocessing/store/dlqs/automatic_redrive.py
@tests/reprocessing/commands/dlqs/test_automatic_redrive.py
an-automatic-dlq-is-said-to-wait-for-a-command: test_one_that_is_added_as_automatic_is_redriven_without_a_command
-    if dlq.mode == Mode.MANUAL:
+    if dlq.mode:
a-beat-that-never-ran-is-missed-by-nobody: test_who_was_not_seen_yet_is_named_and_how_to_start_it
-    return age is None or age > _LATELY
+    return age is not None and age > _LATELY

@reprocessing/store/safety/failed_answers.py
@tests/reprocessing/commands/runs/test_why_attempts_fail.py
every-attempt-is-read-to-say-why-some-fail: test_no_more_attempts_are_read_than_the_newest_of_each_breaker
-    return _most(rows.fetch(_Failed, _FAILED, {"dlq": dlq, "run": run, "depth": DEPTH})).get(dlq)
+    return _most(rows.fetch(_Failed, _FAILED, {"dlq": dlq, "run": run, "depth": 2**31 - 1})).get(dlq)
""")
