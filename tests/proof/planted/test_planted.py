"""Each planted bug is noticed by the test that it names; what nobody notices is no guard, or lacks a test."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.proof.ledger import Ledger
from tests.proof.planted.bugs import BUGS
from tests.proof.planted.stage import PROJECT, Stage
from tests.proof.planted.unnoticed import UNNOTICED
from tests.proof.planted.verdict import AGAIN, LAYER, noted

#: One of plain Python and one that needs a server, both quick: neither makes a database.
SHOWN = ("a-suspended-machine-cries", "an-id-left-out-is-taken")


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with Stage(tmp_path) as ours:
        yield ours


@pytest.mark.soak
def test_every_bug_can_still_be_planted() -> None:
    """Its old text occurs once, the new one is another, and the broken file is Python all the same."""
    assert [name for name, times in Counter(bug.name for bug in BUGS).items() if times > 1] == []
    for bug in (*BUGS, *UNNOTICED):
        whole = (PROJECT / bug.file).read_text()
        broken = bug.planted(whole)
        assert broken != whole, bug.name
        ast.parse(broken, bug.file)


@pytest.mark.soak
def test_every_test_that_is_to_notice_is_there() -> None:
    found: dict[str, set[str]] = {}
    for bug in (*BUGS, *UNNOTICED):
        file, _, test = bug.caught_by.partition("::")
        if file not in found:
            tree = ast.parse((PROJECT / file).read_text())
            found[file] = {one.name for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)}
        assert test.partition("[")[0] in found[file], bug.name


@pytest.mark.soak
def test_a_bug_is_noticed_by_its_test_and_gone_afterwards(stage: Stage) -> None:
    shown = [bug for bug in BUGS if bug.name in SHOWN]
    assert {bug.name: stage.broken(bug).noticed for bug in shown} == dict.fromkeys(SHOWN, True)
    after = stage.unbroken(shown)
    assert (after.passed, after.failed, after.trouble) == (len(SHOWN), {}, "")


@pytest.mark.prove
def test_every_bug_is_noticed_by_its_test(stage: Stage, ledger: Ledger, is_time: Callable[[], bool]) -> None:
    missed: list[str] = []
    by_name = {bug.name: bug for bug in BUGS}
    left = [by_name[name] for name in ledger.turns(LAYER, by_name)]
    print(f"\nFirst the tests of all {len(left)} bugs, without one: minutes, from whose end on time counts", flush=True)  # noqa: T201  somebody waits
    unbroken = stage.unbroken(left)
    assert (unbroken.failed, unbroken.trouble) == ({}, "")
    print(f"{unbroken.passed} tests pass without a bug, in {unbroken.seconds:.0f} s", flush=True)  # noqa: T201  it is asked
    for number, bug in enumerate(left, 1):
        if not is_time():
            break
        ran = stage.broken(bug)
        said = noted(ledger, bug, ran)
        print(f"{number}/{len(left)} {bug.name} ({ran.seconds:.0f} s): {said}", flush=True)  # noqa: T201  as above
        if not ran.noticed:
            missed.append(f"{AGAIN} {bug.name}")
    assert missed == []
