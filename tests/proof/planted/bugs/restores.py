"""What holds everything after PostgreSQL was restored from a backup."""

from __future__ import annotations

from typing import Final

from tests.proof.planted.bug import Bug

_OF_RESTORES: Final = "tests/reprocessing/pipeline/maintenance/test_after_restore.py"

BUGS: Final = (
    Bug(
        name="any-resume-lifts-the-hold-after-a-restore",
        breaks="Nothing is sent after a restore before a person has reconciled: any resume lets it go.",
        file="reprocessing/store/safety/stops.py",
        old="    if dlq is None:\n        refuse_while_held()\n",
        new="",
        also=(
            ("    DELETE FROM redrive_global_stop WHERE id = 1 AND (", "    DELETE FROM redrive_global_stop WHERE ("),
        ),
        caught_by=f"{_OF_RESTORES}::test_no_other_command_lifts_the_hold",
    ),
    Bug(
        name="a-forgotten-return-is-presumed-delivered",
        breaks="A letter whose return is forgotten is presumed delivered, since none is remembered.",
        file="reprocessing/store/replay/settlement.py",
        old="       AND NOT EXISTS (SELECT FROM redrive_global_stop WHERE id = 2)  -- what",
        new="       -- what",
        caught_by=f"{_OF_RESTORES}::test_a_promotion_that_had_begun_before_the_hold_presumes_nothing",
    ),
    Bug(
        name="a-restore-goes-unnoticed",
        breaks="A restore that nobody tells of is held: what Redis knows of the database is not compared.",
        file="reprocessing/pipeline/maintenance/detect_restore.py",
        old="    if known is None or known <= ticks:\n",
        new="    if known is None or known <= ticks or ticks > 0:\n",
        caught_by=f"{_OF_RESTORES}::test_a_restore_that_nobody_tells_of_is_held",
    ),
    Bug(
        name="a-flushed-redis-holds-everything",
        breaks="A Redis that was flushed proves nothing: it holds every send.",
        file="reprocessing/pipeline/maintenance/detect_restore.py",
        old="    if known is None or known <= ticks:\n",
        new="    if known is not None and known <= ticks:\n",
        also=(
            (
                "    return now is None or known <= now.ticks or _hold(",
                "    return bool(known is not None and now and known <= now.ticks) or _hold(",
            ),
            (("        if not restore_detection.raise_ticks(known) and not alone:\n            return None\n"), ""),
            ("known=known, ", "known=known or 0, "),
        ),
        caught_by=f"{_OF_RESTORES}::test_a_redis_that_knows_nothing_holds_nothing",
    ),
    Bug(
        name="a-restore-that-was-held-is-held-again",
        breaks="A restore is told of once: a worker that froze with its proof forgets what people have decided since.",
        file="reprocessing/pipeline/maintenance/detect_restore.py",
        old="        if not restore_detection.raise_ticks(known) and not alone:\n",
        new="        if not restore_detection.raise_ticks(known) and known < 0:\n",
        caught_by=f"{_OF_RESTORES}::test_a_worker_that_froze_with_the_proof_of_a_restore_does_not_hold_it_again",
    ),
    Bug(
        name="what-is-forgotten-has-not-passed",
        breaks="In order: a letter that came back from a forgotten attempt lets earlier ones follow it.",
        file="reprocessing/store/capture/returns_without_attempt.py",
        old="), {PASSED_ONCE}\nUPDATE",
        new=")\nUPDATE",
        caught_by="tests/reprocessing/pipeline/maintenance/test_after_restore.py"
        "::test_what_came_back_from_a_forgotten_attempt_went_before_an_earlier_letter_that_turns_up_now",
    ),
    Bug(
        name="a-hold-ends-before-all-is-in-sight",
        breaks="Nothing goes twice unnamed: a copy that was hidden at the restore is taken for new when it turns up.",
        file="reprocessing/store/maintenance/restore_hold.py",
        old="coalesce(d.drained_through < h.since + %(hidden)b::interval, true)",
        new="coalesce(d.drained_through < h.since, true)",
        caught_by=f"{_OF_RESTORES}::test_a_capture_that_ran_dry_before_all_is_in_sight_ends_no_hold",
    ),
    Bug(
        name="what-died-before-the-hold-is-taken-for-new",
        breaks="Nothing goes twice unnamed: what was captured and sent between backup and restore is taken for new.",
        file="reprocessing/store/maintenance/restore_hold.py",
        old="AND l.first_sent_at < h.since\n",
        new="AND l.first_sent_at < h.restored_to\n",
        caught_by=(
            f"{_OF_RESTORES}::test_what_died_between_the_backup_and_the_hold_is_in_doubt_and_what_died_since_is_not"
        ),
    ),
    Bug(
        name="what-died-since-the-hold-is-doubted",
        breaks="A person decides about what may have been sent, and about nothing else: whatever arrives is in doubt.",
        file="reprocessing/store/maintenance/restore_hold.py",
        old="AND l.first_sent_at < h.since\n",
        new="\n",
        caught_by=(
            f"{_OF_RESTORES}::test_what_died_between_the_backup_and_the_hold_is_in_doubt_and_what_died_since_is_not"
        ),
    ),
)
