"""The target's error text, which may quote a payload, can be taken out of an attempt's detail."""

from __future__ import annotations

from reprocessing.domain.replay import attempt_detail
from reprocessing.domain.replay.verdicts import Refused, Unknown


def test_the_targets_text_is_apart_from_what_everybody_may_read() -> None:
    detail = attempt_detail.detail_of(Refused("503", "no: \x1a such order", quotes=True))
    assert attempt_detail.split(detail) == ("503", "no: \x1a such order")
    assert attempt_detail.without_quotes(detail) == "503"


def test_the_services_own_words_are_whole() -> None:
    for failure, words in (
        (Unknown("no answer: timeout"), "no answer: timeout"),
        (Refused("404", "gone"), "404: gone"),
    ):
        detail = attempt_detail.detail_of(failure)
        assert attempt_detail.split(detail) == (words, "")
        assert attempt_detail.without_quotes(detail) == words
