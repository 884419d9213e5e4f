"""What is searched for quotations of a payload is searched in earnest."""

from __future__ import annotations

import pytest

from tests.proof.poison.corpus import Payload
from tests.proof.poison.secrecy import ENDS, quoted

BODY = "".join(chr(0x4E00 + n) for n in range(3 * ENDS))
PAYLOAD = Payload("long", BODY, {"secret": ("String", "a secret attribute of it")})


@pytest.mark.parametrize("held", [BODY[:40], BODY[-40:], "a secret attribute of it"], ids=["begin", "end", "attribute"])
def test_a_quotation_is_found(held: str) -> None:
    assert quoted(["nothing is said here", f"it said {held}."], PAYLOAD) != ""


def test_another_text_quotes_nothing() -> None:
    assert quoted("this says nothing of what it holds", PAYLOAD) == ""
