"""The stage by itself: Ctrl-C comes between two moves, and everybody can leave afterwards."""

from __future__ import annotations

import signal
import threading

import pytest

from tests.proof.simulation.stage import Actor, Stage


def test_ctrl_c_in_the_middle_of_a_move_is_raised_when_it_has_ended_and_everybody_leaves() -> None:
    stage, tale = Stage(), list[str]()
    us = threading.get_ident()

    def interrupted() -> None:
        signal.pthread_kill(us, signal.SIGINT)
        tale.append("it goes on")
        stage.sleep(1)
        tale.append("it moves once more")

    def waits() -> None:
        stage.sleep(1)
        tale.append("it moves once more")

    stage.actors = [Actor(stage, "one"), Actor(stage, "other")]
    for actor, part in zip(stage.actors, (interrupted, waits), strict=True):
        actor.play(part, mortal=False)
    with pytest.raises(KeyboardInterrupt), stage.interrupt:
        stage.run(lambda: False)
    assert [one.is_out for one in stage.actors] == [False, False]
    stage.clear()
    assert [one.over for one in stage.actors] == [True, True]
    for one in stage.actors:
        one.dismiss()
    assert [one.is_alive() for one in stage.actors] == [False, False]
    assert tale == ["it goes on"]


def test_ctrl_c_after_the_last_move_is_not_lost() -> None:
    stage = Stage()
    assert _pressed(stage, 1) == ["held"]
    with stage.interrupt:  # which begins anew
        stage.interrupt.let_through()


def test_a_second_ctrl_c_is_raised_at_once() -> None:
    assert _pressed(Stage(), 2) == ["held"]


def _pressed(stage: Stage, times: int) -> list[str]:
    """Ctrl-C so often in one block, which is left with it: how often the block went on."""
    done = list[str]()

    def press() -> None:
        with stage.interrupt:
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)
                done.append("held")

    with pytest.raises(KeyboardInterrupt):
        press()
    return done


def test_where_a_move_was_broken_off_nobody_moves_and_nobody_waits() -> None:
    stage, gate, there = Stage(), threading.Event(), _Interrupted()
    stage.back = there  # type: ignore[assignment]  # what is used of a lock
    stage.actors = [Actor(stage, "one"), Actor(stage, "other")]
    stage.actors[0].play(lambda: _wait(gate), mortal=False)
    stage.actors[1].play(lambda: None, mortal=False)
    with pytest.raises(KeyboardInterrupt):
        stage.actors[0].move()
    there.asked = 0
    stage.clear()
    for one in stage.actors:
        one.dismiss()
    assert [(one.is_out, one.over) for one in stage.actors] == [(True, False), (False, False)]
    assert there.asked == 0
    gate.set()


def _wait(gate: threading.Event) -> None:
    gate.wait()


class _Interrupted:
    """A gate that opens for nobody: whoever waits before it is interrupted."""

    def __init__(self) -> None:
        self.asked = 0

    def acquire(self) -> None:
        self.asked += 1
        raise KeyboardInterrupt

    def release(self) -> None:
        """Nobody waits."""
