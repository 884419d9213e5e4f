"""The demo's steps: each is taken once, and only when what it waits for was seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from redrive_service.sandbox.incident import scenario
from redrive_service.sandbox.incident.scenario import Scenario
from tests.sandbox.test_brakes import told

if TYPE_CHECKING:
    from redrive_service.sandbox.shop.world import Shop


class Story:
    """A shop that does nothing, a service that is only told, and what was done to them."""

    def __init__(self, *, shows_brakes: bool = True) -> None:
        self.shows_brakes = shows_brakes
        self.broken = False
        self.done: list[str] = []
        self.plot = Scenario(cast("Shop", self), dlq="shop", manage=self.manage, say=lambda _: None)

    def manage(self, *arguments: str) -> str:
        self.done.append(" ".join(arguments))
        return ""

    def is_broken(self) -> bool:
        return self.broken

    def mend(self) -> None:
        self.done.append("is mended")

    def look(self, **more: Any) -> list[str]:  # noqa: ANN401  # as `told` has it
        before = len(self.done)
        self.plot.go_on(told(**more))
        return self.done[before:]


RULE = (
    "add_rule shop-spoilt --dlq shop --when attribute:account equals account-spoilt --then quarantine "
    "--reason invalid amounts --enable --confirm"
)


def test_the_rule_comes_with_the_third_wave_and_the_mending_with_a_failed_canary_of_the_broken_consumer() -> None:
    story = Story()
    assert story.look(wave=(1, 1)) == []
    assert story.look(wave=(2, 10)) == []
    assert story.look(wave=(3, 100)) == [RULE]
    assert story.look(wave=(3, 100)) == []
    story.broken = True
    assert story.look(wave=(4, None), state="open", since=10) == []
    assert story.look(wave=(4, None), state="half_open", since=13) == []
    assert story.look(wave=(4, None), state="open", since=15) == ["is mended"]
    assert story.look(wave=(4, None), since=25) == []


def test_the_rule_also_comes_when_the_third_wave_began_and_ended_between_two_looks() -> None:
    story = Story()
    assert story.look(wave=(2, 10)) == []
    story.broken = True
    assert story.look(wave=(4, None), state="open", since=10) == [RULE]
    assert story.look(wave=(4, None), state="half_open", since=13) == []
    assert story.look(wave=(4, None), state="open", since=15) == ["is mended"]


def test_a_consumer_is_not_mended_before_it_breaks() -> None:
    story = Story()
    story.look(wave=(3, 100))
    assert story.look(wave=(4, None)) == []


def test_a_consumer_is_mended_also_when_no_canary_was_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenario, "BROKEN_AT_MOST", 0.0)
    story = Story()
    story.broken = True
    assert story.look(wave=(3, 100)) == [RULE, "is mended"]


@pytest.mark.soak
def test_where_there_are_too_few_letters_nothing_happens() -> None:
    story = Story(shows_brakes=False)
    story.broken = True
    for wave in ((1, 1), (2, 10), (3, 100), (4, None)):
        assert story.look(wave=wave) == []
    assert story.plot.brakes.waves == [1, 10, 100, None]
