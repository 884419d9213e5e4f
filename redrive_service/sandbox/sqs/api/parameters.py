"""Read typed parameters from a request.

As on AWS, a wrong JSON type is a SerializationException, and a value out of range is an InvalidParameterValue. For both
errors, SqsError is raised.
"""

import json
from collections.abc import Mapping
from typing import Final, cast

import orjson

from redrive_service.sandbox.sqs.api.errors import SqsError, invalid_value, missing_parameter, wrong_type

Request = Mapping[str, object]
Answer = dict[str, object]

# Ids of groups, deduplication and receive attempts: 1 to 128 letters, digits, ASCII punctuation (AWS, SendMessage).
_ID_CHARACTERS: Final = frozenset(map(chr, range(0x21, 0x7F)))
_LONGEST_ID: Final = 128


def read_parameters(body: bytes) -> dict[str, object]:
    """Return the JSON object in a request's body. Raises SqsError (SerializationException) if it is no JSON object."""
    try:
        parameters = orjson.loads(body)
    except orjson.JSONDecodeError:
        parameters = _read_leniently(body)
    if not isinstance(parameters, dict):
        raise SqsError("SerializationException", "The request's body is not a JSON object.")
    return parameters


def _read_leniently(body: bytes) -> object:
    """Return the value of a JSON text that may contain lone surrogates (half characters), or None if it is not JSON.

    As on AWS, the actions refuse lone surrogates later, with another error.
    """
    try:
        return cast("object", json.loads(body))
    except (ValueError, RecursionError):
        return None


def text(request: Request, name: str) -> str | None:
    """Return the string parameter `name`, or None if it is absent. Raises SqsError if the value is not a string."""
    value = request.get(name)
    if value is None or isinstance(value, str):
        return value
    raise wrong_type(name, "a string")


def required_text(request: Request, name: str) -> str:
    """Return the string parameter `name`. Raises SqsError (MissingParameter) if it is absent or empty."""
    value = request.get(name)
    if value and isinstance(value, str):
        return value
    raise wrong_type(name, "a string") if value not in (None, "") else missing_parameter(name)


def whole(request: Request, name: str) -> int | None:
    """Return the integer parameter `name`, or None if it is absent. Raises SqsError if the value is not an integer."""
    value = request.get(name)
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise wrong_type(name, "a whole number")


def whole_between(request: Request, name: str, low: int, high: int) -> int | None:
    """Return the integer parameter `name`, or None if it is absent. Raises SqsError if it is not in `low` to `high`."""
    value = whole(request, name)
    if value is not None and not low <= value <= high:
        raise invalid_value(value, name, f"Must be between {low} and {high}, if provided.")
    return value


def texts(request: Request, name: str) -> list[str]:
    """Return the list of strings in parameter `name`, or [] if it is absent. Raises SqsError for another value."""
    value = request.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise wrong_type(name, "a list of strings")
    return value


def text_map(request: Request, name: str) -> dict[str, str]:
    """Return the map of strings in parameter `name`, or {} if it is absent. Raises SqsError for another value."""
    value = request.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        raise wrong_type(name, "a map of strings")
    try:
        "".join([*value, *value.values()]).encode()
    except UnicodeEncodeError:
        raise wrong_type(name, "a map of strings without lone surrogates") from None
    return value


def identifier(request: Request, name: str) -> str | None:
    """Return the id in parameter `name`, or None if the parameter is absent.

    Raises:
        SqsError: the id is empty, has more than 128 characters, or has other characters than letters, digits and
            punctuation.
    """
    value = text(request, name)
    if value is None:
        return None
    if not 1 <= len(value) <= _LONGEST_ID or not _ID_CHARACTERS.issuperset(value):
        reason = f"{name} can only include alphanumeric and punctuation characters. 1 to 128 in length."
        raise invalid_value(value, name, reason)
    return value
