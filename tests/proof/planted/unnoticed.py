"""Guards that were taken out and that no test missed: another one stands behind each, and holds the promise alone.

Whoever takes away what is behind them has to see to a test here. `caught_by` names the test that comes nearest.
"""

from __future__ import annotations

from tests.proof.planted.bug import quoted

UNNOTICED = quoted("""
@reprocessing/store/ordering/lane_state.py
@tests/reprocessing/pipeline/replay/test_replay_slice.py
# Nothing: the lane awaits while an attempt holds it, whatever its head is.
heads-skip-what-awaits: test_a_lane_sends_one_letter_at_a_time
-FROM {first_letters("l", "m.lane_id")}) h ON true
+FROM (SELECT * FROM redrive_letter WHERE lane_id = m.lane_id AND state = 'waiting' AND NOT frees_lane
+ ORDER BY sequence, message_id LIMIT 1) l) h ON true

@reprocessing/store/replay/intent.py
@tests/race/safety/test_send_limits.py
# Nothing: of a breaker on trial one letter is admitted, and breakers on trial are locked before.
whatever-is-admitted-goes: test_one_canary_is_sent_however_many_workers_try
- AND (r.breaker_state = 'closed' OR k.letter_id IS NOT NULL)
+

@reprocessing/store/replay/settlement.py
@tests/race/outcomes/test_outcomes.py
# Nothing: a return closes the attempt, and of a closed attempt no letter is settled.
a-letter-that-moved-on-is-settled: test_a_letter_that_returns_before_its_send_is_settled_is_settled_once
-     WHERE l.id = f.letter_id AND l.state = 'sending'
+     WHERE l.id = f.letter_id

@reprocessing/store/runs/enlistment.py
@tests/race/runs/test_enlistment.py
# Nothing but the order of locks: putting letters onto a lane that is there locks it, too.
enlisted-without-a-lock:
    test_lanes_are_locked_in_the_order_of_their_ids_whatever_order_their_letters_failed_in
-    rows.execute(steps.lock_lanes, values)
+

@reprocessing/store/runs/plans.py
@tests/race/runs/test_enlistment.py
# Nothing but time: the selection takes the turn itself; two plans may wait for each other once.
a-plan-takes-its-turn-late: test_of_two_plans_at_once_neither_has_letters_behind_those_of_the_other
-            selection.lock_selection(dlq)
+            del dlq
""")
