"""What keeps a statement's cost to the letters that it is asked for."""

from __future__ import annotations

from tests.proof.planted.bug import quoted

BUGS = quoted("""
@reprocessing/store/aws/aws_redrive_checks.py
@tests/reprocessing/store/test_hot_path.py
every-copy-is-read-to-see-whether-any-is-in-sight (alone): test_the_reads_of_a_statement_do_not_grow_with_the_run
-           ORDER BY c.dlq_id, c.visible_until LIMIT 1) <= redrive_now(), false)
+             AND c.visible_until <= (SELECT redrive_now()) LIMIT 1) IS NOT NULL, false)

@reprocessing/store/ordering/lanes.py
every-lane-behind-a-shut-breaker-is-read-to-lease-others: test_the_reads_of_a_statement_do_not_grow_with_the_run
-    SELECT run_id, breaker_id FROM met WHERE breaker_id > 0 AND breaker_id NOT IN ({SHUT}){{but}}
+    SELECT run_id, breaker_id FROM met WHERE breaker_id > 0{{but}}
-breaker_id = b.breaker_id AND due_at <= (SELECT redrive_now())
+breaker_id = b.breaker_id AND due_at <= (SELECT redrive_now()) AND {MAY_GO}

@reprocessing/store/outcomes/evidence.py
every-look-is-read-to-forget-the-old-ones (alone): test_the_reads_of_a_statement_do_not_grow_with_the_run
-             WHERE s.target_id = t.id
-               AND
+             WHERE s.target_id + 0 = t.id
+               AND

@reprocessing/store/replay/intent.py
every-attempt-of-the-run-is-read-for-each-letter (alone): test_the_reads_of_a_statement_do_not_grow_with_the_run
-a.run_id IS NOT DISTINCT FROM w.run_id
+a.run_id = w.run_id
every-lane-that-was-leased-is-read-to-send-from-some (alone): test_the_reads_of_a_statement_do_not_grow_with_the_run
-n.phase || '' = 'leased'
+n.phase = 'leased'

@reprocessing/store/runs/enlistment.py
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
-{RUN_LEAVES_LETTERS} AND {_HAS_LETTERS} AND l.run_id = r.id
+{RUN_LEAVES_LETTERS} AND l.run_id = r.id
""")
