"""Programs that send requests to the API."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from django.contrib.auth.models import Group, User
from django.http import HttpResponse
from django.test import Client

from reprocessing.domain.api.scopes import Scope
from reprocessing.models import ApiToken
from reprocessing.store.api.tokens import TokenRequest, make_token

PREFIX = "/api/v1"


@dataclass(frozen=True, slots=True)
class Program:
    """A program with a token: without cookies, as behind a proxy that ends TLS; faults are answers."""

    name: str
    secret: str
    client: Client = field(default_factory=lambda: Client(enforce_csrf_checks=True, raise_request_exception=False))

    def get(self, path: str, **query: Any) -> HttpResponse:  # noqa: ANN401  of any parameter
        return self._send("GET", path, query, None, {})

    def post(self, path: str, *, key: str | None = None, **body: Any) -> HttpResponse:  # noqa: ANN401  of any field
        """Send a change with a reason; if it is confirmed, with a key of its own."""
        given = {"reason": "a test", **body}
        key = str(uuid4()) if key is None and given.get("confirm") else key
        return self._send("POST", path, {}, json.dumps(given), {"Idempotency-Key": key} if key else {})

    def raw(self, method: str, path: str, body: bytes | str = b"", **headers: str) -> HttpResponse:
        """Send a request with exactly this body."""
        return self._send(method, path, {}, body, {name.replace("_", "-"): value for name, value in headers.items()})

    def _send(
        self, method: str, path: str, query: dict[str, object], body: bytes | str | None, headers: dict[str, str]
    ) -> HttpResponse:
        sent = {"Authorization": f"Bearer {self.secret}", **headers}
        kind = sent.pop("Content-Type", "application/json")
        answer: Any = self.client.generic(
            method, PREFIX + path, body or b"", kind, query_params=query or None, headers=sent
        )
        found: HttpResponse = answer
        return found


def program(*scopes: Scope, teams: tuple[Group, ...] = (), name: str | None = None) -> Program:
    """A program of these teams or, without teams, of a user who may do everything; without scopes, with all scopes.

    A program of teams also gets the scopes that no new token of teams gets, as a token that was made earlier has them.
    """
    named = name or f"program-{uuid4().hex[:8]}"
    user = None if teams else User.objects.create_superuser(f"owner of {named}")
    wanted = scopes or tuple(Scope)
    asked = TokenRequest(named, (Scope.DLQS_READ,) if teams else wanted, user, teams)
    made = make_token(asked, by="ann", reason="a test")
    ApiToken.objects.filter(pk=made.row.pk).update(scopes=list(wanted))
    return Program(named, made.secret)


def told(answer: Any, status: int = 200) -> Any:  # noqa: ANN401  JSON
    """The JSON of an answer with this status."""
    assert answer.status_code == status, answer.content
    return json.loads(answer.content)


def problem(answer: Any, status: int) -> str:  # noqa: ANN401  of a client of Django's
    """What an error says."""
    found = told(answer, status)
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert (found["type"], found["status"], found["title"] != "") == ("about:blank", status, True)
    return str(found["detail"])
