"""A form with preview, as a browser fills it in."""

from __future__ import annotations

from typing import Any

from django.test import Client

from tests.reprocessing.admin.parking_lot.parked_messages import post


def sheet(client: Client, address: str) -> dict[str, Any]:
    """The sheet as its page was filled in."""
    form = client.get(address).context["form"]
    filled = {name: form[name].value() for name in form.fields}
    return {name: value for name, value in filled.items() if value is not None and value is not False}


def previewed(client: Client, address: str, **changed: Any) -> dict[str, Any]:  # noqa: ANN401
    """The sheet with these values, as it is sent to be saved after its preview."""
    given = sheet(client, address) | changed
    client.handler.enforce_csrf_checks = False
    answer = client.post(address, {**given, "do": "look"})
    seen = answer.context["look"]
    assert seen is not None, answer.content.decode()
    return {**given, "do": "write", "seen": seen.seen, "reason": "a test"}


def saved(client: Client, address: str, **changed: Any) -> str:  # noqa: ANN401
    """The page after the sheet with these values was saved."""
    return post(client, address, **previewed(client, address, **changed))
