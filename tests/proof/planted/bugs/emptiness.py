"""What a target that is seen empty proves, and what it does not (docs/adr/0029)."""

from __future__ import annotations

from typing import Final

from tests.proof.planted.bug import Bug

_EVIDENCE: Final = "reprocessing/store/outcomes/evidence.py"
_OF_EMPTINESS: Final = "tests/reprocessing/pipeline/outcomes/test_empty_target.py"

BUGS: Final = (
    Bug(
        name="delayed-messages-are-not-there",
        breaks="A target that holds delayed messages is not empty: one of them may be the letter.",
        file="reprocessing/pipeline/outcomes/resolve_outcomes.py",
        old="            empty = found.visible == 0 and found.delayed == 0\n",
        new="            empty = found.visible == 0\n",
        caught_by=f"{_OF_EMPTINESS}::test_two_empty_looks_or_a_window_without_visible_messages_prove_absence",
    ),
    Bug(
        name="messages-in-flight-are-not-there",
        breaks="A target is empty though its consumer has the letter, and may fail.",
        file="reprocessing/pipeline/outcomes/resolve_outcomes.py",
        old="quiet=empty and found.in_flight == 0))",
        new="quiet=empty))",
        caught_by=f"{_OF_EMPTINESS}::test_a_message_in_flight_for_longer_than_the_window_is_awaited",
    ),
    Bug(
        name="one-look-is-enough",
        breaks="SQS's counts lag, each by another time: one look that finds nothing proves nothing.",
        file=_EVIDENCE,
        old='PAUSE: Final[LiteralString] = "make_interval(secs => %(count_lag)b::float8)"',
        new='PAUSE: Final[LiteralString] = "make_interval(secs => 0 * %(count_lag)b::float8)"',
        caught_by=f"{_OF_EMPTINESS}::test_two_empty_looks_or_a_window_without_visible_messages_prove_absence",
    ),
    Bug(
        name="the-pause-begins-with-the-first-question",
        breaks="The first answer may tell of a later moment than its question: less than a pause before the second.",
        file=_EVIDENCE,
        old="               AND {FROM} + {PAUSE} <= again.seen_at\n",
        new="               AND s.seen_at + {PAUSE} <= again.seen_at\n",
        caught_by=f"{_OF_EMPTINESS}::test_the_pause_begins_when_the_first_look_was_answered",
    ),
    Bug(
        name="empty-before-sqs-counts",
        breaks="A target that was looked at before SQS counted the letter is no evidence.",
        file=_EVIDENCE,
        old="a.taken_at + make_interval(secs => %(count_lag)b::float8) <= quiet.seen_at\n",
        new="a.taken_at <= quiet.seen_at\n",
        caught_by=f"{_OF_EMPTINESS}::test_two_empty_looks_or_a_window_without_visible_messages_prove_absence",
    ),
    Bug(
        name="a-capture-before-the-second-look-is-enough",
        breaks="A letter that left its target after the capture began, and died, is presumed delivered.",
        file=_EVIDENCE,
        old="AND s.seen_at <= d.drained_through AND {TOLD} <= d.drained_through\n",
        new="AND d.drained_through IS NOT NULL\n",
        caught_by=f"{_OF_EMPTINESS}::test_the_capture_begins_after_the_second_look_was_answered",
    ),
    Bug(
        name="looks-in-between-do-not-matter",
        breaks="A message that changes its state often is missed by both looks, though not by those in between.",
        file=_EVIDENCE,
        old=" WHERE q.empty OR latest.empty\n",
        new=" WHERE q.empty\n",
        caught_by=f"{_OF_EMPTINESS}::test_two_empty_looks_or_a_window_without_visible_messages_prove_absence",
    ),
    Bug(
        name="every-look-that-finds-messages-is-kept",
        breaks="Of a consumer that is away for days, a row is kept for each look, every two seconds.",
        file=_EVIDENCE,
        old=" WHERE q.empty OR latest.empty\n",
        new=" WHERE true\n",
        caught_by=f"{_OF_EMPTINESS}::test_only_the_first_look_that_finds_messages_is_noted",
    ),
    Bug(
        name="empty-in-front-of-a-dlq-that-is-observed",
        breaks="A dlq that is only observed proves nothing, however empty the target.",
        file=_EVIDENCE,
        old="ON d.id = t.watched_by_id AND d.mode <> 'observe'\n",
        new="ON d.id = t.watched_by_id\n",
        caught_by=f"{_OF_EMPTINESS}::test_an_empty_target_of_an_observed_dlq_proves_nothing",
    ),
    Bug(
        name="an-empty-target-acknowledges",
        breaks="A consumer that is to acknowledge has its window for that, though its queue is empty.",
        file=_EVIDENCE,
        old="   AND (t.proof <> 'acknowledged' OR a.deadline <= quiet.drained_through)\n",
        new="",
        caught_by=f"{_OF_EMPTINESS}::test_a_consumer_has_its_window_to_acknowledge",
    ),
    Bug(
        name="a-look-of-before-messages-were-found",
        breaks="A message that was in flight between two looks may be the letter: both count all the same.",
        file=_EVIDENCE,
        old="s.idle_since >= again.idle_since",
        new="s.idle_since IS NOT NULL",
        caught_by=f"{_OF_EMPTINESS}::test_a_look_before_messages_were_found_does_not_count",
    ),
    Bug(
        name="a-later-look-takes-a-proof-back",
        breaks="What was proved stays so: messages that arrive later have letters wait for their window.",
        file=_EVIDENCE,
        old="s.target_id = t.id AND s.idle_since + {PAUSE} <= s.seen_at\n",
        new="s.target_id = t.id\n",
        caught_by=f"{_OF_EMPTINESS}::test_two_empty_looks_or_a_window_without_visible_messages_prove_absence",
    ),
    Bug(
        name="a-first-look-that-finds-messages",
        breaks="A target in which messages lie at the first look counts as empty: one may be the letter.",
        file=_EVIDENCE,
        old="s.empty AND s.seen_at <= again.seen_at",
        new="s.seen_at <= again.seen_at",
        caught_by=f"{_OF_EMPTINESS}::test_two_empty_looks_or_a_window_without_visible_messages_prove_absence",
    ),
    Bug(
        name="a-second-look-that-finds-messages",
        breaks="No loss: what lies in its target at the second look may be the letter that failed.",
        file=_EVIDENCE,
        old="s.empty AND s.seen_at <= d.drained_through",
        new="s.seen_at <= d.drained_through",
        caught_by=f"{_OF_EMPTINESS}::test_two_empty_looks_or_a_window_without_visible_messages_prove_absence",
    ),
)
