"""Several requests at a time: told of as they end, and not begun for ever."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from types import SimpleNamespace

import pytest

from reprocessing.gateways.aws import request_threads
from reprocessing.gateways.aws.request_threads import run_as_completed, run_in_parallel

PATIENCE = 60.0


def test_what_has_ended_is_told_of_while_another_takes_longer() -> None:
    heard = Event()
    asked = run_as_completed(
        lambda one: one if one == "soon" else str(heard.wait(PATIENCE)), ["late", "soon"], 2, within=60
    )
    assert next(asked) == "soon"
    heard.set()
    assert list(asked) == ["True"]
    assert list(run_as_completed(str, [], 2, within=60)) == []


def test_when_its_time_is_over_nothing_more_is_begun_and_what_was_begun_is_told_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0

    def lasts(work: str) -> str:
        nonlocal now
        now += 13
        return work

    monkeypatch.setattr(request_threads, "time", SimpleNamespace(monotonic=lambda: now))
    assert list(run_as_completed(lasts, ["a", "b", "c"], 1, within=20)) == ["a", "b"]


def test_results_are_in_the_order_of_the_works_and_threads_are_kept() -> None:
    used = Counter[int]()

    def double(number: int) -> int:
        used[threading.get_ident()] += 1
        return 2 * number

    for _ in range(20):
        assert run_in_parallel(double, range(50), 4) == list(range(0, 100, 2))
    assert len(used) <= 1 + 3 * 20
    alive = {thread.ident for thread in threading.enumerate()}
    assert used.keys() <= alive


def test_calls_may_be_nested_while_no_thread_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    with ThreadPoolExecutor(1) as pool:
        monkeypatch.setattr(request_threads, "_pool", pool)

        def outer(number: int) -> list[int]:
            return run_in_parallel(lambda each: each + number, range(3), 3)

        assert run_in_parallel(outer, [0, 10], 2) == [[0, 1, 2], [10, 11, 12]]


def test_after_an_error_no_further_call_begins_and_those_that_began_have_ended() -> None:
    failed, ended = Event(), list[str]()

    def act(work: str) -> None:
        if work == "fails":
            failed.set()
            raise LookupError(work)
        if work == "begun":
            failed.wait(PATIENCE)
        ended.append(work)

    with pytest.raises(LookupError):
        run_in_parallel(act, ["begun", "fails", *["later"] * 1_000_000], 2)
    assert "begun" in ended
    assert len(ended) < 1_000_000


FORK = """
import os, sys
from reprocessing.gateways.aws.request_threads import run_in_parallel
assert run_in_parallel(abs, [-1, -2, -3], 3) == [1, 2, 3]
child = os.fork()
assert run_in_parallel(abs, [-1, -2, -3], 3) == [1, 2, 3]
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.soak
def test_a_forked_child_has_threads_of_its_own_and_both_processes_end() -> None:
    done = subprocess.run([sys.executable, "-c", FORK], timeout=30, check=False, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
