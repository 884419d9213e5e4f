"""Each operation of the OpenAPI document, with each scope, for each team: nothing leaks by count, name or error."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pytest
from django.http import HttpResponse

from reprocessing.api.site.caller import Caller
from reprocessing.api.urls import api
from reprocessing.domain.api.scopes import Scope
from reprocessing.models import Approval, AuditEntry, BulkAction, GlobalStop, Letter, Rule, Run
from reprocessing.store.rights import visible_dlqs
from reprocessing.store.rights.visible_dlqs import EVERY_DLQ
from tests.reprocessing.admin.site.two_teams import OURS, THEIRS, Team, two_teams
from tests.reprocessing.api.callers import Program, program

pytestmark = [pytest.mark.django_db, pytest.mark.soak]

DOCUMENT: Final[dict[str, Any]] = json.loads(json.dumps(api.get_openapi_schema(path_prefix="/api/v1/"), default=str))
#: Takes a token that sees all DLQs: a team's token is refused whatever its scopes are.
OF_ALL: Final = {"stop_everything", "resume_everything"}
#: A person decides: a token of teams is refused.
OF_PEOPLE: Final = {"approve", "decline"}
#: Also needs the scope of its action.
ALSO: Final = {"start_bulk": Scope.MESSAGES_DISCARD, "abort_bulk_action": Scope.MESSAGES_ASSIGN}


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of the document."""

    id: str
    method: str
    path: str
    scope: str
    answers: frozenset[str]


def operations() -> Iterator[Operation]:
    for path, methods in DOCUMENT["paths"].items():
        for method, found in methods.items():
            (scope,) = found["security"][0]["ApiToken"]
            answers = frozenset(map(str, found["responses"]))
            yield Operation(found["operationId"], method, path.removeprefix("/api/v1"), scope, answers)


OPERATIONS: Final = tuple(operations())


@pytest.fixture
def teams(settings: Any) -> tuple[Team, Team]:  # noqa: ANN401
    settings.REDRIVE = {**settings.REDRIVE, "API_RATE": 10_000}
    found = two_teams()
    GlobalStop.objects.create(by="ann", reason="a test")
    return found


def send(caller: Program, operation: Operation, about: Team, **more: object) -> HttpResponse:
    """Send the operation about the rows of a team, with a valid body."""
    path = re.sub(r"\{(\w+)\}", lambda found: str(examples(about)[found[1]]), operation.path)
    if operation.method == "get":
        return caller.get(path)
    return caller.post(path, **{**BODIES.get(operation.id, lambda _: {})(about), **more})


def examples(about: Team) -> dict[str, object]:
    rows = about.rows
    return {
        "dlq": about.dlq.name, "redrive_id": about.letter.public_id, "bulk_action": rows[BulkAction],
        "approval": rows[Approval], "run": Run.objects.get(pk=rows[Run]).name,
        "rule": Rule.objects.get(pk=rows[Rule]).name,
    }  # fmt: skip


def _ids(about: Team) -> dict[str, object]:
    return {"redrive_ids": [str(about.letter.public_id)]}


BODIES: Final[dict[str, Any]] = {
    "plan_run": lambda about: {"dlq": about.dlq.name},
    "release_messages": _ids, "discard_messages": _ids, "restore_messages": _ids,
    "assign_messages": lambda about: {**_ids(about), "to": ""}, "note_messages": _ids,
    "start_bulk": lambda about: {"action": "discard", "filter": {"dlq": about.dlq.name}},
}  # fmt: skip


def canaries(answer: HttpResponse) -> bool:
    return THEIRS in answer.content.decode() + str(dict(answer.headers))


def test_each_operation_takes_its_scope_and_no_other(teams: tuple[Team, Team]) -> None:
    opened, expected = dict[str, set[str]](), dict[str, set[str]]()
    callers = {scope: program(scope, teams=(teams[0].group,)) for scope in Scope}
    for operation in OPERATIONS:
        needs_more = operation.id in OF_ALL | OF_PEOPLE or operation.id in ALSO
        expected[operation.id] = set() if needs_more else {operation.scope}
        opened[operation.id] = {
            scope.value for scope, caller in callers.items() if send(caller, operation, teams[0]).status_code != 403
        }
    assert len(opened) == len(OPERATIONS) > 25
    assert opened == expected


def test_an_operation_that_takes_two_scopes_is_open_with_both(teams: tuple[Team, Team]) -> None:
    for name, scope in ALSO.items():
        (operation,) = (one for one in OPERATIONS if one.id == name)
        both = program(Scope(operation.scope), scope, teams=(teams[0].group,))
        assert send(both, operation, teams[0]).status_code in {200, 409}


def test_what_belongs_to_another_team_is_missing_and_not_forbidden(teams: tuple[Team, Team]) -> None:
    """With all scopes: each operation about a row of the other team answers as about a row that does not exist."""
    ours, every = program(*Scope, teams=(teams[0].group,)), program()
    told, sung, silent = list[str](), list[str](), set[str]()
    before = AuditEntry.objects.count()
    for operation in OPERATIONS:
        for more in (dict[str, bool](), {"confirm": True}):
            answer = send(ours, operation, teams[1], **more)
            sung += [operation.id] if canaries(answer) else []
            if answer.status_code != _missing(ours, operation, teams[1], more).status_code:
                told.append(operation.id)
        if not canaries(send(every, operation, teams[1])):
            silent.add(operation.id)
    assert (told, sung) == ([], [])
    assert AuditEntry.objects.filter(by__contains=ours.name).count() == 0
    assert AuditEntry.objects.count() >= before
    assert Letter.objects.get(pk=teams[1].letter.pk).state == "parked"
    assert {name for name in silent if name.startswith(("get", "list"))} == set()


def _missing(caller: Program, operation: Operation, about: Team, more: dict[str, bool]) -> HttpResponse:
    """The answer to the same request about something that nobody has."""
    gone = {
        "dlq": "nobodys", "run": "nobodys", "rule": "nobodys", "bulk_action": 999_999, "approval": 999_999,
        "redrive_id": "00000000-0000-4000-8000-000000000000",
    }  # fmt: skip
    path = re.sub(r"\{(\w+)\}", lambda found: str(gone[found[1]]), operation.path)
    if operation.method == "get":
        return caller.get(path)
    body = json.dumps(BODIES.get(operation.id, lambda _: {})(about))
    sent = json.loads(
        body.replace(str(about.letter.public_id), str(gone["redrive_id"])).replace(about.dlq.name, "nobodys")
    )
    return caller.post(path, **{**sent, **more})


def test_no_list_or_filter_finds_a_row_of_another_team(teams: tuple[Team, Team]) -> None:
    ours, theirs = program(*Scope, teams=(teams[0].group,)), teams[1]
    letter = theirs.letter
    queries: list[tuple[str, dict[str, object]]] = [
        ("/messages", {"q": text}) for text in (letter.message_id, letter.public_id, letter.ordering_key)
    ]
    queries += [("/messages", {"key": letter.ordering_key}), ("/messages", {"text": "card"}), ("/messages", {})]
    queries += [
        ("/messages", {name: value})
        for name, value in (
            ("group", letter.group_id), ("source", letter.source_id), ("target", letter.target_id),
            ("reason", letter.reason),
        )
    ]  # fmt: skip
    queries += [("/messages", {"state": state}) for state in ("captured", "waiting", "delivered", "discarded")]
    queries += [(path, {}) for path in ("/dlqs", "/runs", "/rules", "/bulk-actions")]
    for path, query in queries:
        answer = ours.get(path, **query)
        assert answer.status_code == 200, (path, query, answer.content)
        assert not canaries(answer), (path, query)
        if path == "/messages":
            found = json.loads(answer.content)
            assert found["total"] == len(found["items"])  # and no count of more
    for name in ("dlq", "run", "rule"):
        value = examples(theirs)[name]
        shown = ours.get("/messages", **{name: value})
        gone = ours.get("/messages", **{name: "nobodys"})
        assert (shown.status_code, shown.content) == (gone.status_code, gone.content) == (422, shown.content)


def test_the_name_of_a_run_of_another_team_is_taken_and_no_more_is_said(teams: tuple[Team, Team]) -> None:
    ours = program(*Scope, teams=(teams[0].group,))
    name = str(examples(teams[1])["run"])
    answer = ours.post("/runs", dlq=teams[0].dlq.name, run=name, confirm=True)
    assert json.loads(answer.content)["detail"] == f"The run id {name} is taken. Choose another id."


def test_what_all_dlqs_share_is_changed_by_nobody_who_sees_some(teams: tuple[Team, Team]) -> None:
    ours = program(*Scope, teams=(teams[0].group,))
    Rule.objects.create(name="of-all", action="hold", created_by="ann")
    for path in ("/stop", "/resume", "/rules/of-all/enable"):
        assert ours.post(path, confirm=True).status_code == 403
    assert ours.get("/rules/of-all").status_code == 200
    assert not Rule.objects.get(name="of-all").enabled


def test_the_matrix_would_see_a_guard_that_is_missing(
    teams: tuple[Team, Team], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the scopes of models, or without the check of scopes, the tests above fail."""
    reader = program(Scope.DLQS_READ, teams=(teams[0].group,))
    with monkeypatch.context() as patch:
        patch.setattr(Caller, "require", lambda *_: None)
        assert [one.id for one in OPERATIONS if send(reader, one, teams[0]).status_code == 403] == [
            "stop_everything", "resume_everything", "approve", "decline",
        ]  # fmt: skip
    with monkeypatch.context() as patch:
        patch.setattr(visible_dlqs, "_dlqs_of", lambda _: EVERY_DLQ)
        seer = program(*Scope, teams=(teams[0].group,))
        shown = {one.id for one in OPERATIONS if one.method == "get" and canaries(send(seer, one, teams[1]))}
    assert shown == {one.id for one in OPERATIONS if one.method == "get"}
    assert OURS != THEIRS
