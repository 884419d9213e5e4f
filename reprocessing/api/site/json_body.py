"""Read the JSON body of a request. A body with a repeated key is refused: one of its two values would be ignored."""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpRequest
from ninja.parser import Parser


class RepeatedKey(ValueError):
    """Raised if an object in the body has a key twice. `key`: the key."""

    def __init__(self, key: str) -> None:
        super().__init__(f"the key {key!a} is repeated")
        self.key = key


class UniqueKeysParser(Parser):
    """Reads JSON bodies whose objects have no repeated key."""

    def parse_body(self, request: HttpRequest) -> Any:  # noqa: ANN401  JSON
        """Return the body of a request.

        Raises:
            ValueError: the body is not JSON, or an object has a repeated key (`RepeatedKey`).
        """
        return json.loads(request.body, object_pairs_hook=_unique)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise RepeatedKey(key)
        found[key] = value
    return found
