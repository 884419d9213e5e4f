"""A drain may have a lower rate and a looser order of its own."""

from __future__ import annotations

import pytest

from reprocessing.models import Run
from tests.reprocessing.commands.conftest import Ask
from tests.reprocessing.commands.refusals import refusal
from tests.reprocessing.commands.runs.test_drain_dlq import bench_of, change

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_drain_has_the_limits_that_its_command_gives_and_says_so(ask: Ask) -> None:
    said = ask("drain_dlq", bench_of("ab").name, "--run", "slow", "--rate", "0.5", "--advance", "accepted")
    assert "The run sends at most 0.5 messages/s to each target. A key's next message is sent without waiting" in said
    assert Run.objects.values_list("rate", "waits_for_outcomes").get() == (0.5, False)


def test_without_these_options_a_drain_has_the_limits_of_its_targets(ask: Ask) -> None:
    said = ask("drain_dlq", bench_of("ab").name, "--run", "usual")
    assert "  limits  " not in said
    assert Run.objects.values_list("rate", "waits_for_outcomes").get() == (None, True)


def test_a_dlq_that_holds_keys_keeps_its_order() -> None:
    bench = bench_of("ab")
    change(bench, when_parked="hold")
    assert "its order must be kept" in refusal("drain_dlq", bench.name, "--advance", "accepted")
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    "option", [("--rate", "5"), ("--advance", "accepted"), ("--no-waves",)], ids=lambda one: one[0]
)
def test_a_run_that_exists_keeps_its_limits(ask: Ask, option: tuple[str, ...]) -> None:
    bench = bench_of("ab")
    ask("drain_dlq", bench.name, "--run", "slow", "--rate", "0.5")
    assert "slow exists already, with its own limits" in refusal("drain_dlq", bench.name, "--run", "slow", *option)
    assert Run.objects.values_list("rate", "waits_for_outcomes").get() == (0.5, True)
