"""What holds letters back: rates, breakers, waves, health, stops."""

from __future__ import annotations

from typing import Final

from tests.proof.planted.bug import Bug

_RATE: Final = "reprocessing/gateways/redis/send_rate.py"
_INTENT: Final = "reprocessing/store/replay/intent.py"
_BREAKERS: Final = "reprocessing/store/safety/circuit_breakers.py"
_BRAKES: Final = "reprocessing/store/safety/send_limits.py"
_WAVES: Final = "reprocessing/store/safety/waves.py"
_OF_RATE: Final = "tests/reprocessing/gateways/redis/test_send_rate.py"
_OF_BRAKES: Final = "tests/race/test_brakes.py"
_OF_BREAKERS: Final = "tests/reprocessing/store/safety/test_circuit_breakers.py"
_OF_WAVES: Final = "tests/reprocessing/store/safety/test_waves.py"
_OF_A_RUN_S_WAVES: Final = "tests/reprocessing/pipeline/safety/test_waves_of_a_run.py"
_OF_A_TURN: Final = "tests/reprocessing/pipeline/replay/test_replay_slice.py"
_OF_DOMAIN: Final = "tests/reprocessing/domain/safety/test_circuit_breaker.py"

BUGS: Final = (
    Bug(
        name="a-cold-bucket-is-full",
        breaks="Rate is never exceeded, also after Redis lost everything: what is not known counts as a full bucket.",
        file=_RATE,
        old="local tokens = 0\n",
        new="local tokens = capacity\n",
        caught_by=f"{_OF_RATE}::test_a_bucket_of_which_nothing_is_known_is_empty",
    ),
    Bug(
        name="tokens-outlive-their-server",
        breaks="Rate is never exceeded: a Redis that failed over grants anew what was granted before.",
        file=_RATE,
        old="if was[1] == run then\n",
        new="if was[1] then\n",
        caught_by=f"{_OF_RATE}::test_what_an_earlier_life_of_the_server_left_behind_counts_for_nothing",
    ),
    Bug(
        name="a-new-rate-counts-backwards",
        breaks="Rate is never exceeded: a higher rate fills the bucket for the time before it was set.",
        file=_RATE,
        old="    local refill = math.max(0, now - was[3]) * math.min(was[4], rate) / 1000000\n",
        new="    local refill = math.max(0, now - was[3]) * rate / 1000000\n",
        caught_by=f"{_OF_RATE}::test_a_new_rate_brings_no_tokens",
    ),
    Bug(
        name="tokens-live-for-ever",
        breaks="Rate is never exceeded: a grant is spent together with those of the second after it.",
        file=_RATE,
        old="        return self.granted_at + TOKEN_LIFE\n",
        new="        return self.granted_at + 3600 * TOKEN_LIFE\n",
        caught_by=f"{_OF_RATE}::test_a_grant_lives_for_a_quarter_of_a_second_from_before_it_was_asked_for",
    ),
    Bug(
        name="an-unknown-rate-is-none",
        breaks="Redis gone: replay waits. Here it goes on without a limit.",
        file="reprocessing/pipeline/replay/take_tokens.py",
        old="            return [], until\n        if not token.count:\n",
        new="            return some, until\n        if not token.count:\n",
        caught_by="tests/reprocessing/pipeline/replay/test_replay_slice.py::test_nothing_is_sent_while_redis_does_not_answer",
    ),
    Bug(
        name="more-letters-than-tokens",
        breaks="Rate is never exceeded: all heads go as soon as there is one token.",
        file="reprocessing/pipeline/replay/take_tokens.py",
        old="        return some[: token.count], token.until if",
        new="        return some, token.until if",
        caught_by="tests/reprocessing/pipeline/replay/test_replay_slice.py::test_no_more_letters_are_sent_than_tokens_were_granted",
    ),
    Bug(
        name="two-canaries",
        breaks="The breaker half-opens with exactly one canary: whatever waits for it goes along.",
        file=_INTENT,
        old=" AND (r.breaker_state = 'closed' OR k.letter_id IS NOT NULL)\n",
        new="\n",
        also=((" AND (a.breaker_state = 'closed' OR a.of_breaker = 1)) a\n", ") a\n"),),
        caught_by=f"{_OF_BRAKES}::test_one_canary_is_sent_however_many_workers_try",
    ),
    Bug(
        name="a-canary-takes-others-keys",
        breaks="Claims are taken by what is sent: letters that do not go as the canary hold their keys.",
        file=_INTENT,
        old=" AND (a.breaker_state = 'closed' OR a.of_breaker = 1)) a\n",
        new=") a\n",
        caught_by=f"{_OF_BRAKES}::test_a_canary_takes_no_key_but_its_own",
    ),
    Bug(
        name="a-canary-in-the-old-epoch",
        breaks="Exactly one canary decides: outcomes of before the rest are taken for the canary's.",
        file=_INTENT,
        old="       SET state = 'half_open', epoch = b.epoch + 1, retry_at = NULL,\n",
        new="       SET state = 'half_open', epoch = b.epoch, retry_at = NULL,\n",
        caught_by=f"{_OF_BRAKES}::test_one_canary_is_sent_however_many_workers_try",
    ),
    Bug(
        name="an-open-breaker-lets-go",
        breaks="While the breaker rests nothing goes.",
        file=_INTENT,
        old="     WHERE b.state = 'closed' OR b.retry_at <= redrive_now()\n",
        new="     WHERE b.state = 'closed' OR b.retry_at IS NOT NULL\n",
        also=(("       AND (b.retry_at <= redrive_now()\n", "       AND (b.retry_at IS NOT NULL\n"),),
        caught_by=f"{_OF_BRAKES}::test_while_the_breaker_rests_nothing_is_sent_and_no_attempt_is_counted",
    ),
    Bug(
        name="what-an-open-breaker-holds-back-takes-its-key",
        breaks="Claims are taken by what is sent: letters that an open breaker holds back make their twins wait.",
        file=_INTENT,
        old="     WHERE b.state = 'closed' OR b.retry_at <= redrive_now()\n",
        new="     WHERE b.state = 'closed' OR b.retry_at IS NOT NULL\n",
        caught_by=f"{_OF_BRAKES}::test_a_letter_behind_an_open_breaker_takes_no_key",
    ),
    Bug(
        name="another-epoch-s-outcomes-decide",
        breaks="Only the canary decides: a success of letters sent before the breaker opened closes it.",
        file="reprocessing/store/safety/breaker_window.py",
        old="     WHERE breaker_epoch = a.epoch\n ) e",
        new="     WHERE true\n ) e",
        caught_by=f"{_OF_BREAKERS}::test_only_the_canary_of_this_epoch_decides",
    ),
    Bug(
        name="a-breaker-moved-whatever-it-is-by-now",
        breaks="A row is moved only where nobody has moved it since: what a person reset is opened again.",
        file=_BREAKERS,
        old=" WHERE b.id = m.id AND b.state = m.was AND b.epoch = m.epoch\n",
        new=" WHERE b.id = m.id AND b.state = m.was\n",
        caught_by=f"{_OF_BREAKERS}::test_a_breaker_that_is_reset_meanwhile_is_not_opened",
    ),
    Bug(
        name="rests-of-a-breaker-without-a-cap",
        breaks="The rest of a breaker grows to its cap, and never beyond.",
        file="reprocessing/domain/safety/circuit_breaker.py",
        old="    return min(max(rest * 2, policy.cooldown), policy.cooldown_cap)\n",
        new="    return max(rest * 2, policy.cooldown)\n",
        caught_by=f"{_OF_DOMAIN}::test_the_rest_grows_to_its_cap_and_never_beyond",
    ),
    Bug(
        name="nobody-looks-at-failures",
        breaks="The breaker opens: failures that a dead worker recorded are never looked at.",
        file="reprocessing/pipeline/maintenance/recover.py",
        old="    circuit_breakers.move_all_breakers()\n",
        new="    circuit_breakers.move_breakers([])\n",
        caught_by=(
            "tests/reprocessing/pipeline/maintenance/test_recover.py"
            "::test_failures_that_a_dead_worker_recorded_and_did_not_look_at_open_the_breaker"
        ),
    ),
    Bug(
        name="an-unwell-target-gets-letters",
        breaks="Only healthy and fresh lets letters go: the intent asks nobody.",
        file=_INTENT,
        old=" AND l.target_id NOT IN ({UNWELL})\n",
        new=" AND l.target_id NOT IN (SELECT target_id FROM ({UNWELL}) u WHERE false)\n",
        caught_by=(f"{_OF_BRAKES}::test_nothing_is_intended_for_a_target_that_became_unhealthy_after_the_gate"),
    ),
    Bug(
        name="an-old-verdict-is-believed",
        breaks="What is not known is closed: a target that nobody has looked at for long counts as well.",
        file="reprocessing/store/safety/send_limits.py",
        old="    OR h.checked_at <= redrive_now() - make_interval(secs => h.max_age)\n",
        new="    OR h.checked_at <= redrive_now() - interval '1 year'\n",
        caught_by=f"{_OF_BRAKES}::test_nothing_is_sent_to_a_target_whose_health_check_is_unknown_or_old",
    ),
    Bug(
        name="the-wave-s-size-is-not-asked-for",
        breaks="A wave lets no more than its size go: the whole run goes before its first letter is known.",
        file=_INTENT,
        old="     WHERE NOT a.fresh OR a.wave_room IS NULL OR a.of_wave <= a.wave_room\n",
        new="     WHERE true OR NOT a.fresh OR a.wave_room IS NULL OR a.of_wave <= a.wave_room\n",
        caught_by=f"{_OF_BRAKES}::test_a_wave_is_never_larger_than_its_size",
    ),
    Bug(
        name="waves-are-counted-side-by-side",
        breaks="A wave is counted by one at a time: two intents find the same room.",
        file="reprocessing/store/safety/send_limits.py",
        old="     ORDER BY w.id FOR UPDATE\n), brakes AS",
        new="     ORDER BY w.id\n), brakes AS",
        caught_by=f"{_OF_BRAKES}::test_an_intent_counts_a_wave_after_those_already_in_it",
    ),
    Bug(
        name="a-wave-waits-for-what-cannot-go",
        breaks="A run whose first letter has an earlier one before it by now stands still for ever.",
        file="reprocessing/store/safety/waves.py",
        old="           WHEN l.id = (SELECT h.id FROM redrive_letter h\n",
        new="           WHEN 0 <> (SELECT h.id FROM redrive_letter h\n",
        caught_by=(
            "tests/reprocessing/pipeline/safety/test_waves_of_a_run.py::"
            "test_a_wave_goes_on_when_an_earlier_letter_arrives"
        ),
    ),
    Bug(
        name="a-full-wave-holds-back-what-it-waits-for",
        breaks="A letter that was silent and is released waits for its wave, which waits for it: the run stands still.",
        file=_BRAKES,
        old=" AND l.state = 'waiting' AND {SAYS_NOTHING}\n",
        new=" AND l.state = 'waiting' AND {SAYS_NOTHING} AND a.outcome <> 'silent'\n",
        caught_by=(f"{_OF_A_RUN_S_WAVES}::test_a_wave_goes_on_with_a_released_silent_letter"),
    ),
    Bug(
        name="silence-is-a-success",
        breaks="Silence counts for nothing: a wave of which nothing is known goes well.",
        file=_BRAKES,
        old="(a.outcome IN ('not_sent', 'unknown', 'silent') AND",
        new="(a.outcome IN ('not_sent', 'unknown') AND",
        caught_by=f"{_OF_WAVES}::test_a_letter_without_an_outcome_is_silent_when_it",
    ),
    Bug(
        name="a-wave-does-not-hear-what-is-said-late",
        breaks="What its consumer says of a letter counts: a wave waits for one that it has heard of, late.",
        file=_BRAKES,
        old=" AND a.counts_as_failure IS NULL AND a.returned_at IS NULL)",
        new=" AND a.returned_at IS NULL)",
        caught_by=(f"{_OF_WAVES}::test_the_outcome_of_its_letter_decides_what_follows_a_wave_of_one"),
    ),
    Bug(
        name="a-run-waits-for-what-was-released-for-later",
        breaks="A letter that somebody put off is put off alone: here its whole run waits until then.",
        file=_WAVES,
        old="(l.route = 'delay' OR l.due_at = (\n",
        new="(l.route = 'delay' OR false AND l.due_at = (\n",
        caught_by=f"{_OF_A_RUN_S_WAVES}::test_a_letter_released_for_tomorrow_delays_no_wave",
    ),
    Bug(
        name="a-run-waits-for-what-a-rule-delays",
        breaks="A letter that a rule delays is delayed alone: here its whole run waits until then.",
        file=_WAVES,
        old="(l.route = 'delay' OR l.due_at = (\n",
        new="(false AND l.route = 'delay' OR l.due_at = (\n",
        caught_by=f"{_OF_A_RUN_S_WAVES}::test_a_letter_that_a_rule_delays_delays_no_wave",
    ),
    Bug(
        name="a-target-that-asks-for-rest-gets-the-next-letter",
        breaks="The next wave begins when the one before it is known: a target that asked for rest gets others.",
        file=_WAVES,
        old="(l.due_at > redrive_now() AND (l.route",
        new="(l.due_at > redrive_now() AND (true OR l.route",
        caught_by=f"{_OF_WAVES}::test_a_letter_that_rests_because_its_target_asked_for_it_is_waited_for",
    ),
    Bug(
        name="more-unsettled-than-may-be",
        breaks="A breaker that learns from returns is not overtaken: a target gets more than it may have unsettled.",
        file=_INTENT,
        old="         WHERE (r.room IS NULL OR a.of_target <= r.room) AND",
        new="         WHERE (true OR a.of_target <= r.room) AND",
        caught_by=f"{_OF_BRAKES}::test_no_target_has_more_unsettled_letters_than_allowed",
    ),
    Bug(
        name="a-rule-that-was-saved-is-not-obeyed-at-once",
        breaks="A rule holds for all that is not sent: a turn that looked at them just before sends by the old ones.",
        file=_INTENT,
        old="       AND coalesce((SELECT version FROM redrive_rulebook WHERE id = 1), 0) <= %(book)b::bigint\n",
        new="       AND %(book)b::bigint IS NOT NULL\n",
        caught_by=f"{_OF_A_TURN}::test_no_letter_is_sent_under_old_rules",
    ),
    Bug(
        name="a-breaker-that-is-new-is-not-looked-at",
        breaks="A letter of a class that another worker has just made a breaker for rests for ten seconds.",
        file="reprocessing/pipeline/replay/replay_slice.py",
        old="        return breakers <= brakes.keys() and targets <= {",
        new="        return breakers is not None and targets <= {",
        caught_by=f"{_OF_A_TURN}::test_a_new_breaker_delays_no_letter",
    ),
    Bug(
        name="stops-are-not-asked-for-at-intent",
        breaks="One command stops every send: lanes that were leased before it go on sending.",
        file=_INTENT,
        old="       AND m.run_id IN ({ACTIVE_RUNS}) AND l.target_id",
        new="       AND m.run_id IN (SELECT id FROM redrive_run WHERE state = 'running') AND l.target_id",
        caught_by="tests/race/test_stops.py::test_lanes_that_were_leased_before_send_nothing_after",
    ),
    Bug(
        name="lanes-behind-a-shut-breaker-are-leased",
        breaks="An open breaker costs nothing: workers lease the lanes behind it again and again.",
        file="reprocessing/store/ordering/lanes.py",
        old=" WHERE breaker_id > 0 AND breaker_id NOT IN ({SHUT}){{but}}\n",
        new=" WHERE breaker_id > 0{{but}}\n",
        caught_by="tests/race/test_brakes.py::test_lanes_behind_an_open_breaker_are_neither_leased_nor_hinted_at",
    ),
    Bug(
        name="a-stopped-lane-sends",
        breaks="A lane that a person stopped sends nothing more: one that was leased before goes on.",
        file=_INTENT,
        old="       AND n.stopped_at IS NULL\n",
        new="",
        caught_by=("tests/race/test_stops.py::test_a_lane_that_was_leased_before_it_was_stopped_sends_nothing_after"),
    ),
    Bug(
        name="stop-everything-stops-nothing",
        breaks="One command stops every send, fleet-wide.",
        file="reprocessing/store/ordering/active_runs.py",
        old="   AND NOT EXISTS (SELECT FROM redrive_global_stop)\n",
        new="\n",
        caught_by=(
            "tests/reprocessing/pipeline/replay/test_replay_slice.py"
            "::test_nothing_is_sent_if_it_is_stopped_observed_or_not_running[halted]"
        ),
    ),
    Bug(
        name="an-aborted-run-goes-on",
        breaks="An aborted run sends nothing more: whether it runs is not asked for.",
        file="reprocessing/store/ordering/active_runs.py",
        old=" WHERE r.state = 'running' AND d.stopped_at IS NULL",
        new=" WHERE r.state <> 'planned' AND d.stopped_at IS NULL",
        caught_by="tests/race/test_stops.py::test_lanes_that_were_leased_before_send_nothing_after",
    ),
    Bug(
        name="the-parking-queue-is-told-while-all-is-stopped",
        breaks="One command stops every send: notices go all the same.",
        file="reprocessing/pipeline/maintenance/recover.py",
        old="    if _is_stopped(dlq) or not (owed",
        new="    if not (owed",
        caught_by=(
            "tests/reprocessing/pipeline/maintenance/test_recover.py::test_the_parking_queue_is_told_nothing_while_its_dlq_is_stopped"
        ),
    ),
    Bug(
        name="hints-without-a-stamp",
        breaks="A lane is told of once in a hint's lifetime: workers that are away for a day find messages for ever.",
        file="reprocessing/store/ordering/lanes.py",
        old="UPDATE redrive_lane n SET hinted_until = redrive_now() + make_interval(secs => %(lifetime)b::float8)\n",
        new="UPDATE redrive_lane n SET hinted_until = redrive_now() - make_interval(secs => %(lifetime)b::float8)\n",
        caught_by="tests/reprocessing/store/replay/test_task_hints.py::test_a_lane_is_not_hinted_at_twice_within_the_lifetime",
    ),
    Bug(
        name="a-new-burst-counts-backwards",
        breaks="Rate is never exceeded: a higher burst fills the bucket for the time before it was set.",
        file=_RATE,
        old="math.min(was[2] + refill, was[5], capacity)",
        new="math.min(was[2] + refill, capacity)",
        caught_by=f"{_OF_RATE}::test_a_higher_burst_fills_no_bucket_for_the_time_before_it_was_set",
    ),
)
