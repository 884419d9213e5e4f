"""A token gets the scopes that are named, in one order and each once."""

from __future__ import annotations

import pytest

from reprocessing.domain.api.scopes import Scope, read_scopes
from reprocessing.domain.errors import InvalidApiToken

KNOWN = ", ".join(Scope)


def test_scopes_are_read_in_one_order_and_each_once() -> None:
    assert read_scopes(["runs:read", "dlqs:read", "runs:read"]) == (Scope.DLQS_READ, Scope.RUNS_READ)


@pytest.mark.parametrize(
    ("names", "why"),
    [
        ([], f"A token without scopes could do nothing. Give it some of: {KNOWN}."),
        (["runs:read", "x:read", "a:read"], f'There is no scope "a:read". The scopes are: {KNOWN}.'),
    ],
)
def test_no_scope_or_an_unknown_one_is_refused_with_the_scopes_that_there_are(names: list[str], why: str) -> None:
    with pytest.raises(InvalidApiToken) as refused:
        read_scopes(names)
    assert str(refused.value) == why
