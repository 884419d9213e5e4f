"""A secret is decoded, or refused without being shown."""

from __future__ import annotations

import base64

import pytest

from reprocessing.domain.targets.signing_secret import secret_bytes, secret_problem


def test_a_secret_is_its_text_or_decoded_from_base64() -> None:
    assert secret_bytes("plain text") == b"plain text"
    assert secret_bytes("whsec_" + base64.b64encode(b"\x00\xff").decode()) == b"\x00\xff"
    assert secret_bytes("whsec_!") is None


@pytest.mark.parametrize(
    ("name", "secret", "said"),
    [
        ("orders", "s" * 24, None),
        ("orders", "s" * 23, "orders is shorter than 24 bytes"),
        ("orders", "whsec_" + base64.b64encode(b"s" * 23).decode(), "orders is shorter than 24 bytes"),
        ("orders", "whsec_" + base64.b64encode(b"s" * 24).decode(), None),
        ("orders", "whsec_sss", "orders begins with whsec_, but the rest is not base64"),
    ],
)
def test_a_secret_has_at_least_24_bytes(name: str, secret: str, said: str | None) -> None:
    assert secret_problem(name, secret) == said


@pytest.mark.parametrize("name", ["", "a b", "n" * 65, "whsec_sss"])
def test_a_secret_in_place_of_a_name_is_not_shown(name: str) -> None:
    said = secret_problem(name, "s" * 24)
    assert said is not None
    assert said.startswith("the name of a secret takes 1 to 64")
