from __future__ import annotations

import base64

import pytest

from reprocessing.domain.errors import PayloadKeyUnavailable
from reprocessing.domain.payloads.key_ring import KeyRing, KmsKeyName, LocalKey, key_problems, read_key

TEXT = base64.b64encode(b"k" * 32).decode()
ARN = "arn:aws:kms:eu-west-1:111122223333:key/1f2e"
OLD, NEW = LocalKey("old", b"o" * 32), LocalKey("new", b"n" * 32)


def test_the_first_key_wraps_and_each_key_unwraps_what_it_wrapped() -> None:
    name, wrapped = KeyRing({"old": OLD}).wrap(b"secret", "place")
    ring = KeyRing({"new": NEW, "old": OLD})
    assert (name, ring.unwrap(name, wrapped, "place"), ring.first) == ("old", b"secret", "new")


@pytest.mark.parametrize(
    ("ring", "context", "why"),
    [
        (KeyRing({"new": NEW}), "place", "has no key old, which sealed this message"),
        (KeyRing({"old": LocalKey("old", b"x" * 32)}), "place", "The payload key old does not fit"),
        (KeyRing({"old": OLD}), "another place", "The payload key old does not fit"),
    ],
    ids=["missing", "another key of this name", "another row"],
)
def test_a_key_that_does_not_fit_says_what_to_do(ring: KeyRing, context: str, why: str) -> None:
    wrapped = OLD.wrap(b"secret", "place")
    with pytest.raises(PayloadKeyUnavailable, match=why):
        ring.unwrap("old", wrapped, context)


def test_entries_are_keys_of_32_bytes_or_arns() -> None:
    assert read_key(f"a={TEXT}") == LocalKey("a", b"k" * 32)
    assert read_key(f"a={ARN}") == KmsKeyName(ARN)
    assert KmsKeyName(ARN).region == "eu-west-1"
    assert key_problems([f"a={TEXT}", f"b={ARN}"]) == []


@pytest.mark.parametrize(
    "entry", ["", TEXT, f"A={TEXT}", f"a={TEXT[:-4]}", "a=canary-of-a-key", "a=arn:aws:s3:::bucket"], ids=str
)
def test_a_useless_entry_is_a_problem_that_quotes_no_key(entry: str) -> None:
    (problem,) = key_problems([entry])
    assert ("canary" in problem, TEXT in problem) == (False, False)


def test_a_name_counts_once() -> None:
    assert key_problems([f"a={TEXT}", f"a={ARN}"]) == ["the name a is there twice"]


def test_no_key_is_shown() -> None:
    assert repr(LocalKey("a", b"k" * 32)) == "LocalKey(name='a')"
