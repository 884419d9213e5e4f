"""A form with preview, as a browser fills it in."""

from __future__ import annotations

from typing import Any

from django.test import Client


def sheet(client: Client, address: str) -> dict[str, Any]:
    """The sheet as its page was filled in."""
    form = client.get(address).context["form"]
    filled = {name: form[name].value() for name in form.fields}
    return {name: value for name, value in filled.items() if value is not None}


def look(client: Client, given: dict[str, Any], address: str) -> dict[str, Any]:
    """What looking came to: the sheet as it is sent to be written."""
    client.handler.enforce_csrf_checks = False
    answer = client.post(address, {**given, "do": "look"})
    seen = answer.context["look"]
    assert seen is not None, answer.content.decode()
    return {**given, "do": "write", "seen": seen.seen}
