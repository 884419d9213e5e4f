"""What keeps a statement's cost to the letters that it is asked for."""

from __future__ import annotations

from typing import Final

from tests.proof.planted.bug import Bug

_INTENT: Final = "reprocessing/store/replay/intent.py"
_ENLISTMENT: Final = "reprocessing/store/runs/enlistment.py"
_FLAT: Final = "tests/reprocessing/store/test_hot_path.py::test_the_reads_of_a_statement_do_not_grow_with_the_run"
_ENDED: Final = (
    "tests/reprocessing/store/test_ended_runs.py"
    "::test_ended_runs_do_not_make_an_enlistment_read_the_lanes_of_the_running_one"
)

BUGS: Final = (
    Bug(
        name="every-attempt-of-the-run-is-read-for-each-letter",
        breaks="The last letter costs what the first did: whether one is new to its run is asked of all its attempts.",
        file=_INTENT,
        old="a.run_id IS NOT DISTINCT FROM w.run_id",
        new="a.run_id = w.run_id",
        caught_by=_FLAT,
        alone=True,
    ),
    Bug(
        name="every-lane-that-was-leased-is-read-to-send-from-some",
        breaks="The last letter costs what the first did: the intent reads the dead entries of all leased lanes.",
        file=_INTENT,
        old="n.phase || '' = 'leased'",
        new="n.phase = 'leased'",
        caught_by=_FLAT,
        alone=True,
    ),
    Bug(
        name="every-letter-is-read-because-other-runs-have-ended",
        breaks="History costs nothing: whoever enlists reads all letters to find what ended runs have left.",
        file=_ENLISTMENT,
        old="'awaiting') OFFSET 0) x",
        new="'awaiting')) x",
        caught_by=_FLAT,
        alone=True,
    ),
    Bug(
        name="every-lane-is-locked-after-because-other-runs-have-ended",
        breaks="History costs nothing: whoever enlists reads all lanes to find and lock what ended runs have left.",
        file=_ENLISTMENT,
        old="{RUN_LEAVES_LETTERS} AND {_HAS_LANES}))",
        new="{RUN_LEAVES_LETTERS}))",
        caught_by=_ENDED,
    ),
    Bug(
        name="every-lane-is-read-because-other-runs-have-ended",
        breaks="History costs nothing: whoever enlists reads all lanes to adopt what ended runs have left.",
        file=_ENLISTMENT,
        old="{RUN_LEAVES_LETTERS} AND {_HAS_LANES} AND n.run_id = r.id",
        new="{RUN_LEAVES_LETTERS} AND n.run_id = r.id",
        caught_by=_ENDED,
    ),
    Bug(
        name="every-lane-behind-a-shut-breaker-is-read-to-lease-others",
        breaks="What waits costs nothing: lanes behind a shut breaker are read one by one, and passed over.",
        file="reprocessing/store/ordering/lanes.py",
        old="    SELECT run_id, breaker_id FROM met WHERE breaker_id > 0 AND breaker_id NOT IN ({SHUT}){{but}}\n",
        new="    SELECT run_id, breaker_id FROM met WHERE breaker_id > 0{{but}}\n",
        also=(
            (
                "breaker_id = b.breaker_id AND due_at <= (SELECT redrive_now())\n",
                "breaker_id = b.breaker_id AND due_at <= (SELECT redrive_now()) AND {MAY_GO}\n",
            ),
        ),
        caught_by=_FLAT,
    ),
    Bug(
        name="every-copy-is-read-to-see-whether-any-is-in-sight",
        breaks="Held copies cost nothing: whether AWS is to be asked is found out by reading all of them.",
        file="reprocessing/store/aws/aws_redrive_checks.py",
        old="           ORDER BY c.dlq_id, c.visible_until LIMIT 1) <= redrive_now(), false)",
        new="             AND c.visible_until <= (SELECT redrive_now()) LIMIT 1) IS NOT NULL, false)",
        caught_by=_FLAT,
        alone=True,
    ),
    Bug(
        name="every-look-is-read-to-forget-the-old-ones",
        breaks="Looks cost nothing: each look at a target reads all that are kept.",
        file="reprocessing/store/outcomes/evidence.py",
        old="             WHERE s.target_id = t.id\n               AND",
        new="             WHERE s.target_id + 0 = t.id\n               AND",
        caught_by=_FLAT,
        alone=True,
    ),
)
