"""The intent: which letters may be sent, checked once more under locks."""

from __future__ import annotations

from tests.proof.planted.bug import quoted

BUGS = quoted("""
@reprocessing/store/replay/intent.py
@tests/race/safety/test_send_limits.py
two-canaries: test_one_canary_is_sent_however_many_workers_try
- AND (r.breaker_state = 'closed' OR k.letter_id IS NOT NULL)
+
- AND (a.breaker_state = 'closed' OR a.of_breaker = 1)) a
+) a
a-canary-takes-others-keys: test_a_canary_takes_no_key_but_its_own
- AND (a.breaker_state = 'closed' OR a.of_breaker = 1)) a
+) a
a-canary-in-the-old-epoch: test_one_canary_is_sent_however_many_workers_try
-       SET state = 'half_open', epoch = b.epoch + 1, retry_at = NULL,
+       SET state = 'half_open', epoch = b.epoch, retry_at = NULL,
an-open-breaker-lets-go: test_while_the_breaker_rests_nothing_is_sent_and_no_attempt_is_counted
-     WHERE b.state = 'closed' OR b.retry_at <= redrive_now()
+     WHERE b.state = 'closed' OR b.retry_at IS NOT NULL
-       AND (b.retry_at <= redrive_now()
+       AND (b.retry_at IS NOT NULL
what-an-open-breaker-holds-back-takes-its-key: test_a_letter_behind_an_open_breaker_takes_no_key
-     WHERE b.state = 'closed' OR b.retry_at <= redrive_now()
+     WHERE b.state = 'closed' OR b.retry_at IS NOT NULL
an-unwell-target-gets-letters: test_nothing_is_intended_for_a_target_that_became_unhealthy_after_the_gate
- AND l.target_id NOT IN ({UNHEALTHY_TARGETS})
+ AND l.target_id NOT IN (SELECT target_id FROM ({UNHEALTHY_TARGETS}) u WHERE false)
the-wave-s-size-is-not-asked-for: test_a_wave_is_never_larger_than_its_size
-     WHERE NOT a.fresh OR a.wave_room IS NULL OR a.of_wave <= a.wave_room
+     WHERE true OR NOT a.fresh OR a.wave_room IS NULL OR a.of_wave <= a.wave_room
more-unsettled-than-may-be: test_no_target_has_more_unsettled_letters_than_allowed
-         WHERE (r.room IS NULL OR a.of_target <= r.room) AND
+         WHERE (true OR a.of_target <= r.room) AND
nothing-is-intended-behind-a-lost-canary: test_a_canary_without_any_outcome_loses_its_slot_in_time
-(b.canary_until IS NULL OR b.canary_until <= redrive_now()))
-), rooms
+b.canary_until IS NULL)
+), rooms
no-canary-goes-behind-a-lost-one: test_a_canary_without_any_outcome_loses_its_slot_in_time
-(b.canary_until IS NULL OR b.canary_until <= redrive_now())))
-    RETURNING
+b.canary_until IS NULL))
+    RETURNING
@tests/race/replay/test_claims.py
another-letter-s-claim-is-won: test_a_key_of_another_letter_is_won_only_when_it_is_free
-     WHERE c.state = 'free' OR c.letter_id = excluded.letter_id
+     WHERE true OR c.letter_id = excluded.letter_id
equal-keys-stall-the-batch: test_of_one_batch_one_wins_the_key
-    SELECT DISTINCT ON (target_id, dlq_id, idempotency_key) target_id, dlq_id::text,
+    SELECT target_id, dlq_id::text,
sent-without-its-key: test_of_several_workers_one_wins_the_key
-     WHERE idempotency_key IS NULL OR EXISTS (SELECT FROM claimed WHERE claimed.letter_id = admitted.id)
+     WHERE true OR EXISTS (SELECT FROM claimed WHERE claimed.letter_id = admitted.id)
a-discarded-letter-s-equal-goes-beside-its-copy:
    test_a_released_letter_does_not_win_a_discarded_key_while_a_copy_of_the_other_may_be_there
-c.state <> 'held' AND coalesce(c.until <= redrive_now(), true) AND EXISTS (
+c.state <> 'held' AND EXISTS (
@tests/race/ordering/test_heads.py
a-head-that-is-one-no-longer-goes: test_an_earlier_letter_that_returned_meanwhile_goes_first
-       AND l.id = (SELECT h.id FROM
+       AND l.id >= (SELECT h.id FROM
@tests/race/ordering/test_lanes.py
intent-without-fence: test_an_owner_without_its_fence_intends_renews_and_hands_back_nothing
-     WHERE n.fence = a.fence AND n.phase || '' = 'leased'
+     WHERE n.phase || '' = 'leased'
intent-on-a-lease-that-ends: test_an_intent_needs_enough_of_its_lease
-       AND n.due_at > redrive_now() + make_interval(secs => %(margin)b::float8)
+
@tests/race/safety/test_stops.py
stops-are-not-asked-for-at-intent: test_lanes_that_were_leased_before_send_nothing_after
-       AND m.run_id IN ({ACTIVE_RUNS}) AND l.target_id
+       AND m.run_id IN (SELECT id FROM redrive_run WHERE state = 'running') AND l.target_id
a-stopped-lane-sends: test_a_lane_that_was_leased_before_it_was_stopped_sends_nothing_after
-       AND n.stopped_at IS NULL
+
@tests/reprocessing/pipeline/aws/test_moved_meanwhile.py
committed-to-what-aws-has-just-moved: test_what_is_committed_to_a_moment_later_is_not_sent
- AND l.blocked_reason <> 'moved_by_aws'
+
@tests/reprocessing/pipeline/parking_lot/test_edit.py
an-edit-is-not-what-is-sent: test_what_was_written_is_sent_byte_for_byte_and_what_was_captured_stays
-coalesce(v.body, p.body, '') AS body
+coalesce(p.body, '') AS body
@tests/reprocessing/pipeline/replay/test_gate.py
a-claim-that-is-complete-before-the-send: test_an_equal_letter_waits_while_its_key_is_being_sent
-           sha256(convert_to(idempotency_key, 'UTF8')), id, 'held', body_hash,
+           sha256(convert_to(idempotency_key, 'UTF8')), id, 'delivered', body_hash,
@tests/reprocessing/pipeline/replay/test_replay_slice.py
a-rule-that-was-saved-is-not-obeyed-at-once: test_no_letter_is_sent_under_old_rules
-       AND coalesce((SELECT version FROM redrive_rulebook WHERE id = 1), 0) <= %(book)b::bigint
+       AND %(book)b::bigint IS NOT NULL
intent-beside-an-attempt-that-holds-the-lane:
    test_no_letter_is_intended_while_an_attempt_of_a_former_head_holds_the_lane
-       AND (SELECT a.id FROM redrive_attempt a WHERE a.lane_id = m.lane_id AND a.holds_lane) IS NULL
+
not-counted-at-intent: test_a_letter_that_kills_its_workers_is_parked_after_its_attempts
-SET state = 'sending', attempts = l.attempts + 1, due_at = NULL,
+SET state = 'sending', attempts = l.attempts, not_sent = l.not_sent + 1, due_at = NULL,
@tests/reprocessing/store/test_hot_path.py
every-attempt-of-the-run-is-read-for-each-letter (alone): test_the_reads_of_a_statement_do_not_grow_with_the_run
-a.run_id IS NOT DISTINCT FROM w.run_id
+a.run_id = w.run_id
every-lane-that-was-leased-is-read-to-send-from-some (alone): test_the_reads_of_a_statement_do_not_grow_with_the_run
-n.phase || '' = 'leased'
+n.phase = 'leased'
""")
