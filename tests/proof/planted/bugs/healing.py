"""Automatic redrive that does not heal: attempts used up by outages, targets tried for ever, canaries that are lost."""

from __future__ import annotations

from typing import Final

from tests.proof.planted.bug import Bug

_INTENT: Final = "reprocessing/store/replay/intent.py"
_OF_BRAKES: Final = "tests/race/test_brakes.py"
_OF_GIVING_UP: Final = "tests/reprocessing/domain/safety/test_give_up.py"
_OF_THE_GATE: Final = "tests/reprocessing/pipeline/replay/test_gate.py"
_OF_BREAKERS: Final = "tests/reprocessing/store/safety/test_circuit_breakers.py"
_BREAKERS: Final = "reprocessing/store/safety/circuit_breakers.py"
_FAILS_SINCE: Final = f"{_OF_BREAKERS}::test_failing_since_lasts_from_the_first_opening_to_a_successful_canary"
_SPARED_BEFORE: Final = (
    "tests/reprocessing/pipeline/replay/test_last_attempts.py::test_a_spared_attempt_leaves_another_one"
)
_HEALS: Final = "tests/reprocessing/pipeline/safety/test_automatic_redrive_heals.py"
_SPARED: Final = "reprocessing/store/safety/outage_attempts.py"

BUGS: Final = (
    Bug(
        name="a-failed-wave-opens-no-breaker",
        breaks="Recovery without a person: the next wave of one message goes at once, one after another.",
        file="reprocessing/store/safety/waves.py",
        old="            _open_breakers(run, verdict.why)  # first: nothing is to go between this and the next wave\n",
        new="            pass\n",
        caught_by=f"{_HEALS}::test_while_a_target_is_down_each_cooldown_sends_one_canary",
    ),
    Bug(
        name="a-standing-run-stops-itself",
        breaks="Recovery without a person: a wave that failed ends automatic redrive.",
        file="reprocessing/store/safety/waves.py",
        old="success=wave.success, heals=wave.standing)",
        new="success=wave.success, heals=False)",
        caught_by=f"{_HEALS}::test_an_outage_parks_nothing_and_needs_no_person",
    ),
    Bug(
        name="the-run-up-to-an-opening-counts",
        breaks="An outage uses up no attempt: what failed before the breaker opened counts.",
        file=_BREAKERS,
        old="    spare_epochs({(move.row.id, move.row.epoch) for move in opened})\n",
        new="    spare_epochs(())\n",
        caught_by=f"{_HEALS}::test_spent_messages_open_the_breaker_if_nothing_succeeds",
    ),
    Bug(
        name="late-failures-count",
        breaks="An outage uses up no attempt: what comes back after the breaker opened counts.",
        file="reprocessing/pipeline/capture/capture.py",
        old="            spare_late([letter.attempt_id for letter in back])\n",
        new="            spare_late([])\n",
        caught_by=f"{_HEALS}::test_returns_after_the_breaker_opened_do_not_count",
    ),
    Bug(
        name="poison-is-spared",
        breaks="At most N counted attempts: a message that fails while others go well is tried for ever.",
        file=_SPARED,
        old="AND coalesce(f.id > e.success, true)",
        new="AND true",
        caught_by=f"{_HEALS}::test_a_failure_before_a_success_counts",
    ),
    Bug(
        name="spent-in-an-outage-is-parked",
        breaks="An outage parks nothing: the settlement parks a message of an automatic run without asking for others.",
        file="reprocessing/pipeline/replay/settle.py",
        old="attempt.attempts >= dlq.max_attempts and not attempt.standing:",
        new="attempt.attempts >= dlq.max_attempts:",
        caught_by=f"{_HEALS}::test_a_limit_of_one_attempt_outlasts_an_outage",
    ),
    Bug(
        name="targets-are-never-given-up",
        breaks="A person is called when one is needed: a target that never comes back is tried for ever, in silence.",
        file="reprocessing/pipeline/maintenance/recover.py",
        old="    delete_copies.delete_from_dlqs(failing_targets.give_up_on_failing_targets().deletable)\n",
        new="    delete_copies.delete_from_dlqs(())\n",
        caught_by=f"{_HEALS}::test_a_target_that_stays_down_pauses_the_run",
    ),
    Bug(
        name="a-resumed-run-is-given-up-at-once",
        breaks="A run that a person resumed pauses again with the next sweep.",
        file="reprocessing/store/safety/failing_targets.py",
        old="greatest(f.failing_since, x.at, r.changed_at) AS since",
        new="greatest(f.failing_since, x.at) AS since",
        caught_by=f"{_HEALS}::test_a_resumed_run_gets_the_whole_time_again",
    ),
    Bug(
        name="loops-go-round",
        breaks="A DLQ that refills with what is redriven is redriven for ever.",
        file="reprocessing/pipeline/maintenance/recover.py",
        old="    redrive_loops.pause_looping_runs()\n",
        new="    pass\n",
        caught_by=f"{_HEALS}::test_a_redrive_loop_pauses_the_run",
    ),
    Bug(
        name="what-came-back-after-a-success-is-spared",
        breaks="At most N counted attempts: a queue that takes every message has each of them tried for ever.",
        file=_SPARED,
        old=" AND NOT {SEEMED_WELL}\n",
        new="\n",
        caught_by=f"{_HEALS}::test_a_message_that_comes_back_again_and_again_is_parked",
    ),
    Bug(
        name="nobody-leases-behind-a-lost-canary",
        breaks="Recovery without a person: a canary of which nothing is heard keeps its place for ever.",
        file="reprocessing/store/safety/send_limits.py",
        old="(b.state = 'half_open' AND b.canary_until > redrive_now())\n    OR b.target_id",
        new="(b.state = 'half_open' AND b.canary_until IS NOT NULL)\n    OR b.target_id",
        caught_by=f"{_OF_BRAKES}::test_a_canary_without_any_outcome_loses_its_slot_in_time",
    ),
    Bug(
        name="nothing-is-intended-behind-a-lost-canary",
        breaks="Recovery without a person: likewise, no intent is committed any more.",
        file=_INTENT,
        old="(b.canary_until IS NULL OR b.canary_until <= redrive_now()))\n), rooms",
        new="b.canary_until IS NULL)\n), rooms",
        caught_by=f"{_OF_BRAKES}::test_a_canary_without_any_outcome_loses_its_slot_in_time",
    ),
    Bug(
        name="no-canary-goes-behind-a-lost-one",
        breaks="Recovery without a person: likewise, no letter becomes the next canary.",
        file=_INTENT,
        old="(b.canary_until IS NULL OR b.canary_until <= redrive_now())))\n    RETURNING",
        new="b.canary_until IS NULL))\n    RETURNING",
        caught_by=f"{_OF_BRAKES}::test_a_canary_without_any_outcome_loses_its_slot_in_time",
    ),
    Bug(
        name="a-person-s-reset-keeps-the-epoch",
        breaks="A person decides: the late failure of a canary opens what was closed, or half opened, over it.",
        file="reprocessing/store/safety/breaker_resets.py",
        old="SET state = %(state)b::text, epoch = b.epoch + 1, since = k.now",
        new="SET state = %(state)b::text, since = k.now",
        caught_by=f"{_OF_BREAKERS}::test_the_late_failure_of_a_canary_moves_no_breaker_that_was_reset_by_hand",
    ),
    Bug(
        name="a-canary-s-failure-outweighs-a-person",
        breaks="A person decides: a canary that failed shortens the rest for which a person opened the breaker.",
        file=_BREAKERS,
        old=" WHERE b.id = m.id AND b.state = m.was AND b.epoch = m.epoch\n",
        new=" WHERE b.id = m.id\n",
        caught_by=f"{_OF_BREAKERS}::test_a_failed_canary_moves_no_breaker_that_is_reset_meanwhile[open]",
    ),
    Bug(
        name="a-wave-of-before-opens-a-breaker",
        breaks="A breaker that was moved since is left alone: what failed before it closed opens it again.",
        file=_BREAKERS,
        old="        if (row.id, row.epoch) in failures\n",
        new="        if row.id in dict(failures)\n",
        caught_by=f"{_OF_BREAKERS}::test_a_failed_wave_opens_a_breaker_only_in_the_epoch_of_its_failures",
    ),
    Bug(
        name="an-outage-is-anew-with-each-rest",
        breaks="A person is called when one is needed: a target fails since its last canary, and never for long.",
        file=_BREAKERS,
        old="THEN coalesce(b.failing_since, k.now)\n",
        new="THEN k.now\n",
        caught_by=_FAILS_SINCE,
    ),
    Bug(
        name="a-canary-that-says-nothing-ends-an-outage",
        breaks="A person is called when one is needed: canaries from which nothing follows say that a target is well.",
        file=_BREAKERS,
        old="THEN CASE WHEN m.successes = 0 THEN b.failing_since END END,\n",
        new="THEN NULL::timestamptz END,\n",
        caught_by=_FAILS_SINCE,
    ),
    Bug(
        name="a-canary-that-went-well-ends-no-outage",
        breaks="A target that takes messages now and then is given up as one that takes none.",
        file=_BREAKERS,
        old="THEN CASE WHEN m.successes = 0 THEN b.failing_since END END,\n",
        new="THEN b.failing_since END,\n",
        caught_by=_FAILS_SINCE,
    ),
    Bug(
        name="who-opens-a-breaker-says-that-it-is-well",
        breaks="A person is called when one is needed: who opens a breaker by hand begins the time anew.",
        file="reprocessing/store/safety/breaker_resets.py",
        old="CASE WHEN NOT k.closes THEN b.failing_since END,\n",
        new="CASE WHEN NOT k.closes THEN NULL::timestamptz END,\n",
        caught_by=f"{_OF_BREAKERS}::test_only_closing_a_breaker_by_hand_ends_failing_since",
    ),
    Bug(
        name="a-failed-wave-opens-every-breaker",
        breaks="A failed wave opens the breakers of what failed: those of other classes, which are well, open too.",
        file="reprocessing/store/safety/waves.py",
        old="\n   AND (({_FATE}) = 'failed' OR (w.size = 1 AND ({_FATE}) = 'poison'))\n",
        new="\n",
        caught_by="tests/reprocessing/store/safety/test_waves.py"
        "::test_a_failed_wave_of_a_standing_run_opens_the_breakers_of_its_failures_and_begins_anew",
    ),
    Bug(
        name="poison-opens-breakers-of-other-classes",
        breaks="Nothing follows from poison for its target: a failed wave opens breakers where only poison failed.",
        file="reprocessing/store/safety/waves.py",
        old="\n   AND (({_FATE}) = 'failed' OR (w.size = 1 AND ({_FATE}) = 'poison'))\n",
        new=" AND a.breaker_id IS NOT NULL AND {_FATE} IN ('failed', 'poison')\n",
        caught_by="tests/reprocessing/store/safety/test_waves.py"
        "::test_a_failed_wave_opens_no_breaker_at_which_only_poison_failed",
    ),
    Bug(
        name="poison-gives-a-target-up",
        breaks="Nothing follows from poison for its target: a day of poison pauses the run.",
        file="reprocessing/store/safety/failing_targets.py",
        old="           a.counts_as_failure IS TRUE OR a.returned_at IS NOT NULL AS failed,\n",
        new="           a.counts_as_failure IS TRUE OR a.returned_at IS NOT NULL OR a.outcome = 'refused' AS failed,\n",
        caught_by="tests/reprocessing/store/safety/test_failing_targets.py::test_a_run_without_failures_does_not_pause",
    ),
    Bug(
        name="a-spent-message-is-no-canary",
        breaks="Recovery without a person: a message without attempts, at the head of its lane, tries no target.",
        file="reprocessing/pipeline/replay/gate.py",
        old="            return None if on_trial else OpenBreaker(",
        new="            return OpenBreaker(",
        caught_by="tests/reprocessing/pipeline/replay/test_gate.py::test_a_spent_head_is_parked_or_opens_its_breaker",
    ),
    Bug(
        name="a-dead-worker-s-letter-has-used-what-was-spared",
        breaks="An outage uses up no attempt: a letter whose worker died is parked for attempts that were spared.",
        file="reprocessing/store/ordering/orphaned_lanes.py",
        old="l.attempts - l.attempts_before_release - l.spared >= d.max_attempts AS spent",
        new="l.attempts - l.attempts_before_release >= d.max_attempts AS spent",
        caught_by=_SPARED_BEFORE,
    ),
    Bug(
        name="a-dead-worker-s-lane-waits-for-what-was-spared",
        breaks="An outage uses up no attempt: the lane of a dead worker waits, as if its letter had no attempt left.",
        file="reprocessing/store/ordering/orphaned_lanes.py",
        old="SELECT l.attempts - l.attempts_before_release - l.spared >= d.max_attempts AND {OUTLASTS}",
        new="SELECT l.attempts - l.attempts_before_release >= d.max_attempts AND {OUTLASTS}",
        caught_by=_SPARED_BEFORE,
    ),
    Bug(
        name="two-failures-of-a-day-give-nothing-up",
        breaks="A person is called when one is needed: a target with few messages and long rests is tried on.",
        file="reprocessing/domain/safety/give_up.py",
        old="FEWEST: Final = 2\n",
        new="FEWEST: Final = 3\n",
        caught_by=f"{_OF_GIVING_UP}::test_two_failures_are_enough_however_few_they_are",
    ),
    Bug(
        name="canaries-do-not-rotate",
        breaks="One poison head holds no breaker open: the head that failed most is the canary, again and again.",
        file="reprocessing/pipeline/replay/gate.py",
        old="sorted(some, key=lambda standing: standing.tries or 0)",
        new="list(some)",
        caught_by=f"{_OF_THE_GATE}::test_the_head_with_the_fewest_tries_is_the_canary",
    ),
    Bug(
        name="what-used-up-its-attempts-goes-on",
        breaks="At most N counted attempts: the gate lets a message go whose attempts are used up.",
        file="reprocessing/pipeline/replay/gate.py",
        old="            return Park(ParkedReason.ATTEMPTS_SPENT)\n",
        new="            return None\n",
        caught_by=f"{_OF_THE_GATE}::test_a_spent_head_is_parked_or_opens_its_breaker",
    ),
    Bug(
        name="nobody-waits-for-what-others-tell",
        breaks="An outage parks nothing: a message is judged before the outcomes of those beside it are known.",
        file="reprocessing/domain/safety/failure_cause.py",
        old="    if failures.seconds_ago < PATIENCE:\n",
        new="    if failures.seconds_ago < 0:\n",
        caught_by="tests/reprocessing/domain/safety/test_failure_cause.py"
        "::test_a_message_is_at_fault_when_others_went_well_beside_it",
    ),
)
