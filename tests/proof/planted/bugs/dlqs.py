"""Registered DLQs and their schedule."""

from __future__ import annotations

from tests.proof.planted.bug import quoted

BUGS = quoted("""
@reprocessing/admin/dlqs/dlq_form.py
@tests/reprocessing/admin/dlqs/test_dlq_form.py
a-target-cannot-be-tried-for-ever: test_give_up_after_has_a_default_and_can_be_set_or_emptied
-    "give_up_after", "new_key_delay", "receive_limit",
+    "new_key_delay", "receive_limit",
the-admin-forgets-when-a-target-is-given-up: test_give_up_after_has_a_default_and_can_be_set_or_emptied
-"waves", "wave_success", "give_up_after", "role_arn", "held_copies_limit",
+"waves", "wave_success", "role_arn", "held_copies_limit",

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

@reprocessing/store/dlqs/schedule.py
@tests/race/capture/test_captures.py
a-turn-waits-for-who-names-its-dlq: test_a_new_row_that_names_a_dlq_keeps_nobody_from_capturing_it
-skip_locked=True, no_key=True, of
+skip_locked=True, of
@tests/reprocessing/test_tasks.py
a-turn-that-is-given-counts-as-had: test_a_turn_that_could_not_be_handed_over_is_given_again_a_minute_later
-                then = min(then, now + RETRY_AFTER)
+
every-poll-that-waited-runs: test_however_many_polls_of_a_dlq_wait_it_is_polled_and_captured_once
-.exclude(poll_began_at__gt=after).update(
+.update(

@reprocessing/store/dlqs/source_queues.py
@tests/reprocessing/commands/dlqs/test_remove_source.py
a-source-goes-under-its-parked-letters: test_one_that_an_unfinished_or_parked_letter_goes_back_to_is_refused
-Q(finished_at=None) | Q(state=LetterState.PARKED), dlq=
+Q(finished_at=None), dlq=
""")
