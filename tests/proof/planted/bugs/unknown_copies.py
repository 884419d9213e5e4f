"""What keeps a key held while a copy whose attempt ended unknown may be in its target."""

from __future__ import annotations

from typing import Final

from tests.proof.planted.bug import Bug

_AFTERMATH: Final = "reprocessing/store/replay/settlement_effects.py"
_OF_TWINS: Final = "tests/reprocessing/pipeline/replay/test_twins_of_an_unknown_copy.py"
_NOT_SENT: Final = f"{_OF_TWINS}::test_a_twin_is_not_sent_while_a_copy_may_be_in_the_target"
_ELSEWHERE: Final = f"{_OF_TWINS}::test_a_divert_frees_no_key_while_a_copy_may_be_in_the_target"

BUGS: Final = (
    Bug(
        name="whatever-leaves-frees-its-key",
        breaks="No twin beside a copy: a letter that is parked frees its key, whatever may be in its target.",
        file=_AFTERMATH,
        old="       SET state = CASE WHEN m.claim = 'free' AND m.until IS NOT NULL THEN 'held' ELSE m.claim END,\n",
        new="       SET state = m.claim,\n",
        caught_by=_NOT_SENT,
    ),
    Bug(
        name="a-last-attempt-of-unknown-end-frees-its-key",
        breaks="No twin beside a copy: where no lane waits for it, a last attempt of unknown end frees the key.",
        file="reprocessing/pipeline/replay/settle.py",
        old='LetterState.PARKED, "free" if known else "held",\n            deadline=target.copy_window if',
        new='LetterState.PARKED, "free",\n            deadline=None and target.copy_window if',
        caught_by=_NOT_SENT,
    ),
    Bug(
        name="a-lost-worker-s-last-attempt-frees-its-key",
        breaks="No twin beside a copy: a last attempt whose worker was lost frees the key.",
        file="reprocessing/store/ordering/orphaned_lanes.py",
        old="coalesce(f.until, {COPY_UNTIL}) AS until\n",
        new="f.until\n",
        caught_by=_NOT_SENT,
    ),
    Bug(
        name="a-target-without-a-window-keeps-no-copy",
        breaks="No twin beside a copy: where a target has no window of its own, a key is free at once.",
        file=_AFTERMATH,
        old="      ELSE greatest(300, t.visibility, t.timeout) END)\n",
        new="      ELSE 0 END)\n",
        caught_by=_NOT_SENT,
    ),
    Bug(
        name="a-discard-taken-back-frees-its-key",
        breaks="No twin beside a copy: a discard that is taken back frees the key.",
        file="reprocessing/store/parking_lot/restore_discarded.py",
        old="greatest({COPY_UNTIL}, (",
        new="greatest(NULL::timestamptz, (",
        caught_by=f"{_OF_TWINS}::test_a_restored_letter_keeps_its_key",
    ),
    Bug(
        name="a-rule-that-diverts-frees-the-key",
        breaks="No twin beside a copy: a rule that sends a letter elsewhere frees the key where its copy may be.",
        file="reprocessing/store/routing/routing_decisions.py",
        old="SET state = CASE WHEN m.until IS NULL THEN 'free' ELSE 'held' END, until = m.until\n",
        new="SET state = 'free', until = NULL\n",
        caught_by=_ELSEWHERE,
    ),
    Bug(
        name="a-key-waits-for-a-letter-that-goes-elsewhere",
        breaks="No key stands for ever: it waits for a head that is sent to another target, or under another key.",
        file=_AFTERMATH,
        old="    SELECT CASE WHEN e.target_id = c.target_id\n",
        new="    SELECT CASE WHEN true OR e.target_id = c.target_id\n",
        caught_by=_ELSEWHERE,
    ),
    Bug(
        name="a-discarded-letter-s-twin-goes-beside-its-copy",
        breaks="No twin beside a copy: a person releases the twin of a discarded letter, and it goes at once.",
        file="reprocessing/store/replay/intent.py",
        old="c.state <> 'held' AND coalesce(c.until <= redrive_now(), true) AND EXISTS (",
        new="c.state <> 'held' AND EXISTS (",
        caught_by="tests/race/test_claims.py"
        "::test_a_released_letter_does_not_win_a_discarded_key_while_a_copy_of_the_other_may_be_there",
    ),
    Bug(
        name="a-forgotten-return-frees-another-copy-s-key",
        breaks="No twin beside a copy: a return of an attempt that is forgotten frees the key of an earlier one.",
        file="reprocessing/store/capture/returns_without_attempt.py",
        old="SET state = CASE WHEN m.until IS NULL THEN 'free' ELSE 'held' END, until = m.until\n",
        new="SET state = 'free', until = NULL\n",
        caught_by=f"{_OF_TWINS}::test_a_return_of_a_forgotten_attempt_frees_no_key",
    ),
    Bug(
        name="a-purge-frees-a-held-key",
        breaks="No twin beside a copy: the letter is forgotten, and its key with it.",
        file="reprocessing/store/maintenance/retention.py",
        old="   AND {COPY_UNTIL} IS NULL\n",
        new="",
        caught_by="tests/reprocessing/store/maintenance/test_retention.py"
        "::test_a_letter_is_not_deleted_while_its_target_may_hold_a_copy",
    ),
)
