"""The demo's steps: each is taken once, and only when what it waits for was seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from redrive_service.sandbox import plot
from redrive_service.sandbox.plot import Plot
from tests.sandbox.test_brakes import told

if TYPE_CHECKING:
    from redrive_service.sandbox.shop.world import Shop


class Story:
    """A shop that does nothing, a service that is only told, and what was done to them."""

    def __init__(self, *, shows_brakes: bool = True) -> None:
        self.shows_brakes = shows_brakes
        self.consumed = False
        self.done: list[str] = []
        self.plot = Plot(cast("Shop", self), dlq="shop", manage=self.manage, say=lambda _: None)

    def manage(self, *arguments: str) -> str:
        self.done.append(" ".join(arguments))
        return ""

    def is_consumed(self) -> bool:
        return self.consumed

    def break_again(self) -> None:
        self.done.append("breaks")

    def mend(self) -> None:
        self.done.append("is mended")

    def look(self, *, touched: int = 0, **more: Any) -> list[str]:  # noqa: ANN401  # as `told` has it
        """What is done now that the service says this."""
        before, look = len(self.done), told(**more)
        if look["runs"][0]["wave"]:
            look["runs"][0]["wave"]["touched"] = touched
        self.plot.go_on(look)
        return self.done[before:]


RULE = (
    "add_rule shop-spoilt --dlq shop --when attribute:account equals account-spoilt --then quarantine "
    "--reason its amounts are no numbers --enable --confirm"
)


def test_the_rule_comes_with_the_third_wave_the_break_once_that_is_consumed_and_the_mending_with_a_failed_canary() -> (
    None
):
    story = Story()
    assert story.look(wave=(1, 1), touched=1) == []
    assert story.look(wave=(2, 10), touched=10) == []
    assert story.look(wave=(3, 100), touched=50) == [RULE]
    assert story.look(wave=(3, 100), touched=100) == []
    story.consumed = True
    assert story.look(wave=(3, 100), touched=99) == []
    assert story.look(wave=(3, 100), touched=100) == ["breaks"]
    assert story.look(wave=(4, None), state="open", since=10) == []
    assert story.look(wave=(4, None), state="half_open", since=13) == []
    assert story.look(wave=(4, None), state="open", since=15) == ["is mended"]
    assert story.look(wave=(4, None), since=25) == []


def test_a_wave_that_was_over_before_anybody_looked_is_not_waited_for() -> None:
    story = Story()
    story.consumed = True
    assert story.look(wave=(3, 100), touched=3) == [RULE]
    assert story.look(wave=(4, None)) == ["breaks"]


def test_a_consumer_is_mended_also_when_no_canary_was_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plot, "BROKEN_AT_MOST", 0.0)
    story = Story()
    story.consumed = True
    story.look(wave=(3, 100))
    assert story.look(wave=(4, None)) == ["breaks", "is mended"]


def test_where_there_are_too_few_letters_nothing_happens() -> None:
    story = Story(shows_brakes=False)
    story.consumed = True
    for wave in ((1, 1), (2, 10), (3, 100), (4, None)):
        assert story.look(wave=wave, touched=100) == []
    assert story.plot.brakes.waves == [1, 10, 100, None]
