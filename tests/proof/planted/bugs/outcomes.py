"""What is believed of what was sent: settlement, evidence, backoff."""

from __future__ import annotations

from typing import Final

from tests.proof.planted.bug import Bug

_SETTLEMENT: Final = "reprocessing/store/replay/settlement.py"
_EVIDENCE: Final = "reprocessing/store/outcomes/evidence.py"
_OF_PROMOTE: Final = "tests/reprocessing/pipeline/outcomes/test_resolve_outcomes.py"
_TOO_EARLY: Final = f"{_OF_PROMOTE}::test_a_letter_is_not_presumed_delivered_before_its_deadline"

BUGS: Final = (
    Bug(
        name="settled-is-accepted",
        breaks="One at a time: where the outcome is to be known first, the next letter goes when the target took one.",
        file="reprocessing/pipeline/replay/settle.py",
        old="frees_lane=target.advance == Advance.ACCEPTED,\n",
        new="frees_lane=True,\n",
        caught_by="tests/reprocessing/pipeline/replay/test_replay_slice.py::test_a_lane_sends_one_letter_at_a_time",
    ),
    Bug(
        name="settled-twice",
        breaks="A letter that is back before its send is settled is settled once: its return is overwritten.",
        file=_SETTLEMENT,
        old="      FROM fate f WHERE a.id = f.attempt_id AND num_nonnulls(a.closed_at, a.taken_at) = 0\n",
        new="      FROM fate f WHERE a.id = f.attempt_id\n",
        caught_by="tests/race/test_outcomes.py::test_a_letter_that_returns_before_its_send_is_settled_is_settled_once",
    ),
    Bug(
        name="finished-letters-are-closed-again",
        breaks="No loss: a letter that is under way, or was delivered, is parked or discarded by a late gate.",
        file=_SETTLEMENT,
        old="      FROM fate f WHERE l.id = f.letter_id AND l.state = ANY(%(from)b::text[])\n",
        new="      FROM fate f WHERE l.id = f.letter_id AND num_nulls(%(from)b::text[]) = 0\n",
        caught_by="tests/reprocessing/store/replay/test_settlement.py::test_a_letter_in_another_state_is_not_closed",
    ),
    Bug(
        name="a-failure-frees-nothing",
        breaks="A key is free after a definite failure: its twins wait for ever.",
        file=_SETTLEMENT,
        old="              CASE l.state WHEN 'discarded' THEN 'discarded' WHEN 'parked' THEN 'free' END AS claim,\n",
        new="              NULL AS claim,\n",
        caught_by=(
            "tests/reprocessing/store/replay/test_settlement.py::test_the_key_of_a_closed_letter_is_free_or_discarded"
        ),
    ),
    Bug(
        name="what-was-not-sent-counts",
        breaks="At most N counted attempts: a letter is parked as spent that never left.",
        file="reprocessing/pipeline/replay/settle.py",
        old="due=max(unsent_wait(attempt.not_sent), _asked(outcome.after)), detail=outcome.why, counted=False,\n",
        new="due=max(unsent_wait(attempt.not_sent), _asked(outcome.after)), detail=outcome.why,\n",
        caught_by=(
            "tests/reprocessing/pipeline/replay/test_settle.py::test_an_attempt_that_was_not_sent_does_not_count"
        ),
    ),
    Bug(
        name="nothing-reported-is-taken",
        breaks="No loss: an attempt that the wire says nothing of counts as taken.",
        file="reprocessing/pipeline/replay/settle.py",
        old='    unknown = Unknown("no outcome was recorded")\n',
        new="    unknown = Taken(None)\n",
        caught_by="tests/reprocessing/pipeline/replay/test_settle.py::test_a_failed_attempt_counts_and_the_letter_waits",
    ),
    Bug(
        name="promoted-without-a-drained-dlq",
        breaks="Presumed delivered only when a drained capture began after the window: a return may lie in the dlq.",
        file=_EVIDENCE,
        old="AND a.deadline <= seen.drained_through\n",
        new="AND a.deadline <= redrive_now()\n",
        caught_by=_TOO_EARLY,
    ),
    Bug(
        name="promoted-without-a-capture-after-the-sighting",
        breaks="Presumed delivered only when the dlq was drained a window after the target was seen consumed.",
        file=_EVIDENCE,
        old="AND s.seen_at <= again.seen_at - {GAP}\n               AND {FROM} + {GAP} <= again.seen_at\n",
        new="AND {FROM} <= again.seen_at\n",
        caught_by=f"{_OF_PROMOTE}::test_the_evidence_of_absence",
    ),
    Bug(
        name="promoted-though-it-is-not-counted-as-visible-yet",
        breaks="A letter that failed is not counted as visible yet when it is looked for, and presumed delivered.",
        file=_EVIDENCE,
        old="greatest(t.window, t.visibility + %(count_lag)b::float8)",
        new="greatest(t.window, 0 * %(count_lag)b::float8)",
        caught_by=f"{_OF_PROMOTE}::test_looks_are_at_least_a_visibility_timeout_and_a_count_lag_apart",
    ),
    Bug(
        name="a-look-is-over-with-its-question",
        breaks="A capture that began before the second answer counts as begun after it.",
        file=_EVIDENCE,
        old='TOLD: Final[LiteralString] = "s.seen_at + make_interval(secs => s.took)"',
        new='TOLD: Final[LiteralString] = "s.seen_at"',
        caught_by=f"{_OF_PROMOTE}::test_a_look_may_be_as_late_as_its_answer",
    ),
    Bug(
        name="promoted-by-a-capture-before-the-second-sighting",
        breaks="A letter that lay in its target and was buried after the capture is presumed delivered.",
        file=_EVIDENCE,
        old="s.empty AND s.seen_at <= d.drained_through\n                            AND {TOLD} <= d.drained_through\n",
        new="s.empty\n",
        caught_by=(f"{_OF_PROMOTE}::test_a_letter_that_fails_after_the_capture_is_not_presumed_delivered"),
    ),
    Bug(
        name="promoted-on-one-sighting",
        breaks="A letter that failed and lies in its target since is presumed delivered.",
        file=_EVIDENCE,
        old="AND s.seen_at <= again.seen_at - {GAP}\n               AND {FROM} + {GAP} <= again.seen_at\n",
        new="AND {FROM} + {GAP} <= d.drained_through\n",
        caught_by=f"{_OF_PROMOTE}::test_a_letter_that_is_visible_in_its_target_is_not_presumed_delivered",
    ),
    Bug(
        name="promoted-before-sqs-counts",
        breaks="SQS's counts lag: a target that seems empty right after a send proves nothing.",
        file=_EVIDENCE,
        old="   AND a.taken_at + make_interval(secs => %(count_lag)b::float8) <= seen.seen_at\n) by_window",
        new="   AND a.taken_at - make_interval(secs => %(count_lag)b::float8) <= seen.seen_at\n) by_window",
        caught_by=f"{_OF_PROMOTE}::test_the_evidence_of_absence",
    ),
    Bug(
        name="promoted-by-a-dlq-that-is-observed",
        breaks="A dlq that is only observed proves nothing.",
        file=_EVIDENCE,
        old="     WHERE d.mode <> 'observe'\n",
        new="     WHERE d.mode <> ''\n",
        caught_by=f"{_OF_PROMOTE}::test_an_observed_dlq_proves_nothing",
    ),
    Bug(
        name="promoted-over-a-return",
        breaks="Against a return whoever locks the lane first decides: a letter that came back is promoted.",
        file=_SETTLEMENT,
        old=(
            "     WHERE a.id = ANY(%(attempts)b::bigint[]) AND num_nonnulls(a.closed_at) = 0 AND a.taken_at IS "
            "NOT NULL\n"
        ),
        new="     WHERE a.id = ANY(%(attempts)b::bigint[]) AND a.taken_at IS NOT NULL\n",
        caught_by="tests/race/test_outcomes.py::test_a_promotion_that_waited_for_a_return_promotes_nothing",
    ),
    Bug(
        name="another-reader-hides-nothing",
        breaks="A capture proves nothing while another reader may hide what came back.",
        file="reprocessing/pipeline/runs/feed_run.py",
        old="in_flight <= capture_lease.count_invisible(",
        new="in_flight >= 0 * capture_lease.count_invisible(",
        caught_by="tests/reprocessing/pipeline/capture/test_another_reader.py::test_no_absence_while_another_reader_hides_a_return",
    ),
    Bug(
        name="a-target-that-holds-letters-is-consumed",
        breaks="A target that holds letters was not seen consumed.",
        file="reprocessing/pipeline/outcomes/resolve_outcomes.py",
        old="            empty = found.visible == 0 and found.delayed == 0\n",
        new="            empty = found.delayed == 0\n",
        caught_by=f"{_OF_PROMOTE}::test_a_target_with_messages_is_no_evidence",
    ),
    Bug(
        name="rests-without-a-cap",
        breaks="Backoff is min(cap, 2^n * base): a letter that fails often rests for years.",
        file="reprocessing/domain/replay/backoff.py",
        old=(
            "        whole = min(self.cap / self.base, 2.0 ** min(failures, _DOUBLINGS)) if self.base else 0.0\n"
            "        return min(self.cap, self.base * whole) *"
        ),
        new="        whole = 2.0 ** min(failures, 20) if self.base else 0.0\n        return self.base * whole *",
        caught_by="tests/reprocessing/domain/replay/test_backoff.py::test_without_jitter_it_doubles_up_to_the_cap",
    ),
    Bug(
        name="a-refusal-makes-the-unknown-known",
        breaks="One at a time: a letter is refused whose copy may lie in the target, and the next of its key goes.",
        file="reprocessing/pipeline/replay/settle.py",
        old="    known = isinstance(failure, Refused) and not attempt.unsure\n",
        new="    known = isinstance(failure, Refused)\n",
        caught_by=(
            "tests/reprocessing/pipeline/replay/test_last_attempts.py"
            "::test_a_known_failure_after_an_unknown_one_does_not_free_the_lane"
        ),
    ),
    Bug(
        name="what-is-to-end-leaves-its-copy-behind",
        breaks="One at a time: a letter is parked whose copy may lie in the target, and the next of its key goes.",
        file="reprocessing/pipeline/replay/settle.py",
        old="        later = put_off_letters([closing.letter_id for closing in ours.values()])\n",
        new="        later = set[int]()\n",
        caught_by=(
            "tests/reprocessing/pipeline/replay/test_last_attempts.py"
            "::test_a_letter_that_is_to_end_keeps_lane_and_key_while_a_copy_may_come_back"
        ),
    ),
    Bug(
        name="a-rule-ends-what-may-come-back",
        breaks="One at a time: a rule ends a letter whose copy may lie in the target, and the next of its key goes.",
        file="reprocessing/pipeline/routing/route.py",
        old="    return put_off_letters(ending, owned=lot.owned) if ending else set()\n",
        new="    return set()\n",
        caught_by=(
            "tests/reprocessing/pipeline/replay/test_last_attempts.py"
            "::test_a_letter_that_is_to_end_keeps_lane_and_key_while_a_copy_may_come_back"
        ),
    ),
    Bug(
        name="a-key-is-free-where-a-copy-may-lie",
        breaks="A rule sends a letter elsewhere, and its key is free in the target that a copy of it may lie in.",
        file="reprocessing/pipeline/routing/route.py",
        old="        return self.closing is not None or self.leaves\n",
        new="        return self.closing is not None\n",
        caught_by=(
            "tests/reprocessing/pipeline/replay/test_an_earlier_attempt_of_unknown_end.py"
            "::test_a_divert_waits_while_a_copy_may_come_back"
        ),
    ),
)
