"""Each address by each role of one team, for what is its own and what is another team's.

The addresses come from the resolver: an address that nobody has said anything about fails, here and in test_matrix.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import Q
from django.http import HttpResponseBase
from django.test import Client
from django.urls import URLPattern, get_resolver, reverse

from reprocessing.admin.parking_lot import decision
from reprocessing.domain.api.scopes import Scope
from reprocessing.models import (
    ApiToken,
    AuditEntry,
    BulkAction,
    GlobalStop,
    Heartbeat,
    ManagedObject,
    NotificationRoute,
    Policy,
    Rule,
    Rulebook,
    Run,
)  # fmt: skip
from reprocessing.models.discovery import DiscoveredQueue, DiscoveredSource, DiscoveryScope
from reprocessing.store.api.tokens import TokenRequest, make_token
from reprocessing.store.rights import roles, visible_dlqs
from tests.reprocessing.admin.site import test_matrix
from tests.reprocessing.admin.site.two_teams import OURS, THEIRS, Team, member, scoped_models, two_teams

pytestmark = [pytest.mark.django_db, pytest.mark.soak]

ROLES = [role.group for role in roles.ROLES]
STRONGEST = ROLES[-1]
#: Pages of what belongs to no single DLQ: no role of a team opens them.
OF_ALL = {
    "stop", "resume", "reprocessing_deadletterqueue_add", "reprocessing_target_add", "reprocessing_apitoken_add",
}  # fmt: skip
#: Models whose rows belong to nobody.
COMMON = {GlobalStop, Heartbeat, Rulebook}
#: Models without a condition: nobody without the right to see all DLQs sees a row. Discovery's pages are closed, too.
FOR_ALL = {ApiToken, DiscoveredQueue, ManagedObject, Policy}
#: Forms of Django and beat, and what ends the session.
_BESIDE = {"logout", "login", "password_change", "password_change_done", "reports"}
_REFUSED = {403, 404, 405}


@dataclass(frozen=True, slots=True)
class Page:
    """An address: its name, and whether it is about one row of a team."""

    name: str
    address: str
    about_row: bool


def pages(of: Team) -> Iterator[Page]:
    """Every address of the project that has a name, about the rows of a team."""
    for pattern, space in test_matrix._patterns(get_resolver().url_patterns, ""):
        if not pattern.name:
            continue
        asked = {name: _example(of, pattern, name) for name in pattern.pattern.converters}
        asked |= {"app_label": "reprocessing"} if pattern.name == "app_list" else {}
        its = bool(asked.keys() - {"app_label", "content_type_id"}) and not _is_common(pattern.name)
        yield Page(pattern.name, reverse(f"{space}{pattern.name}", kwargs=asked), its)


def _example(of: Team, pattern: URLPattern, name: str) -> Any:  # noqa: ANN401  a number or a text
    if name == "object_id":
        model = _model(pattern.name or "")
        return of.rows[model] if model in of.rows else test_matrix._row(pattern.name or "")
    if name == "id":
        return User.objects.earliest("pk").pk
    return of.examples()[name]  # a parameter that is not there: say which row of a team it is


def _model(name: str) -> Any:  # noqa: ANN401  a model, or None
    found = [one for one in admin.site._registry if name.startswith(f"{one._meta.label_lower.replace('.', '_')}_")]
    return found[0] if found else None


def _is_common(name: str) -> bool:
    return _model(name) in COMMON


def _is_of_all(page: Page) -> bool:
    model = _model(page.name)
    return page.name in OF_ALL or model is DiscoveredQueue or (model in FOR_ALL and page.about_row)


@pytest.fixture
def teams() -> tuple[Team, Team]:
    found = two_teams()
    GlobalStop.objects.create(by="ann", reason="a test")
    Heartbeat.record("queue")
    Rulebook.objects.get_or_create(pk=1)
    Policy.objects.create(name=THEIRS)
    asked = TokenRequest(THEIRS, (Scope.DLQS_READ,), teams=(found[1].group,))
    make_token(asked, by=THEIRS, reason=THEIRS)
    ManagedObject.objects.create(kind="policies", name=THEIRS, written={}, applied_by="ann")
    scope = DiscoveryScope.objects.create(region="eu-west-1")
    arn = f"arn:aws:sqs:eu-west-1:111122223333:{THEIRS}"
    DiscoveredQueue.objects.create(arn=arn, scope=scope, last_error="SQS refused it.")
    DiscoveredSource.objects.create(dlq_arn=arn, source_arn=f"{arn}-source", kind="queue", scope=scope)
    return found


@pytest.fixture(params=[[STRONGEST], pytest.param(ROLES[:-1], marks=pytest.mark.long)], ids=["strongest", "others"])
def people(teams: tuple[Team, Team], request: pytest.FixtureRequest) -> dict[str, Client]:
    return {role: member(role, teams[0].group) for role in request.param}


@pytest.fixture
def strongest(teams: tuple[Team, Team]) -> Client:
    return member(STRONGEST, teams[0].group)


def body(answer: HttpResponseBase) -> str:
    """Everything that an answer says, also in its headers."""
    return b"".join(answer).decode(errors="replace") + str(dict(answer.headers))


def leaks(answer: HttpResponseBase, asked: str) -> bool:
    """Whether an answer has a text of the other team; a searched text is shown again, and is not a leak."""
    found = body(answer)
    for _, text in parse_qsl(asked.partition("?")[2]):
        found = found.replace(text, "")
    return THEIRS in found


def test_every_address_of_the_own_team_is_open_as_the_role_allows_and_shows_nothing_of_the_other(
    teams: tuple[Team, Team], people: dict[str, Client]
) -> None:
    opened, expected, sung = dict[str, set[str]](), dict[str, set[str] | None](), list[tuple[str, str]]()
    for page in pages(teams[0]):
        who = test_matrix._expected(page.name)
        expected[page.name] = None if who is None else set() if _is_of_all(page) else who & people.keys()
        opened[page.name] = set()
        for role, client in people.items() if page.name != "logout" else ():
            answer = client.get(page.address)
            opened[page.name] |= {role} if test_matrix._may(answer) else set()
            sung += [(page.name, role)] if leaks(answer, page.address) else []
    assert len(opened) > 100
    assert opened == expected
    assert sung == []


def test_no_address_of_another_team_is_open_to_any_role(teams: tuple[Team, Team], people: dict[str, Client]) -> None:
    """Pages about no row are the same for both teams: the test of the own team's addresses has read them."""
    opened, sung = dict[tuple[str, str, str], int](), list[tuple[str, str, str]]()
    for page in pages(teams[1]):
        for role, client in people.items() if page.name not in _BESIDE else ():
            answers = {"POST": client.post(page.address, {"reason": "why", "seen": "none", "do": "write", "act": "x"})}
            answers |= {"GET": client.get(page.address)} if page.about_row else {}
            for how, answer in answers.items():
                if page.about_row and answer.status_code not in _REFUSED:
                    opened[page.name, role, how] = answer.status_code
                assert answer.status_code < 500, (page, role, how)
                sung += [(page.name, role, how)] if leaks(answer, page.address) else []
    assert opened == {}
    assert sung == []


def test_what_a_role_may_do_is_missing_and_not_forbidden_for_rows_of_another_team(
    teams: tuple[Team, Team], people: dict[str, Client]
) -> None:
    """403 would say that the row exists. To a role that may not do it, rows of both teams are alike."""
    theirs = {**teams[1].examples(), "group": teams[1].letter.group_id}
    shown, told = set[str](), set[str]()
    for action, may in test_matrix.ACTIONS.items():
        for role, client in people.items() if "{" in action and "{mark}" not in action else ():
            sent = {"reason": "why", "seen": "none"}
            answer = client.post(action.format(**theirs), sent)
            gone = client.post(action.format(**dict.fromkeys(theirs, 999_999)), sent)
            shown |= {action} if role in may and answer.status_code != 404 else set()
            told |= {action} if answer.status_code != gone.status_code else set()
    assert (shown, told) == (set(), set())


def their_questions(ours: Team, theirs: Team) -> Iterator[str]:
    """Addresses of our own lists that ask for rows of the other team in their query."""
    its, row = theirs.dlq.pk, theirs.rows
    here = "/admin/reprocessing"
    yield from (f"{here}/{model}/?dlq__id__exact={its}" for model in ("letter", "lane", "source", "rule", "incident"))
    yield from (f"{here}/{model}/?dlq={its}" for model in ("run", "failuregroup", "parkedletter"))
    yield from (f"{here}/letter/?{name}={theirs.letter.group_id}" for name in ("group", "group__id__exact"))
    yield from (f"{here}/letter/?q={text}" for text in (theirs.letter.message_id, theirs.letter.public_id))
    yield f"{here}/letter/?q=key-{theirs.canary}"
    named = ("group", theirs.letter.group_id), ("source", theirs.letter.source_id), ("run", row[Run])
    yield from (
        f"{here}/parkedletter/?{name}={pk}"
        for name, pk in (*named, ("target", theirs.letter.target_id), ("rule", row[Rule]))
    )
    yield f"{here}/parkedletter/?q={theirs.letter.message_id}"
    yield f"{here}/parkedletter/?reason=attempts_spent"
    yield f"{here}/run/add/?like={row[Run]}"
    yield f"{here}/run/add/?dlq={its}"
    yield f"{here}/rule/add/?letter={theirs.letter.pk}"
    yield f"{here}/auditentry/?dlq__id__exact={its}"
    yield f"{here}/notification/?route__id__exact={row[NotificationRoute]}"
    yield "/admin/board"
    yield f"/admin/hours?dlq={its}"


def test_no_query_of_a_list_finds_a_row_of_another_team(teams: tuple[Team, Team], people: dict[str, Client]) -> None:
    for address in their_questions(*teams):
        for role, client in people.items():
            assert not leaks(client.get(address), address), (address, role)


def test_a_query_for_a_row_of_another_team_is_answered_as_if_there_were_none(
    teams: tuple[Team, Team], strongest: Client
) -> None:
    seen = {address: strongest.get(address).status_code for address in their_questions(*teams)}
    missing = {address.partition("?")[0] for address, status in seen.items() if status == 404}
    assert missing == {"/admin/hours", "/admin/reprocessing/run/add/"}
    assert set(seen.values()) == {200, 404}


def forms(theirs: Team) -> Iterator[tuple[str, dict[str, Any], int]]:
    """Forms about rows of the other team that a person with the strongest role sends, and the status of the answer."""
    lot, letters = "/admin/reprocessing/parkedletter", decision.pack_messages([theirs.letter])
    for action in decision.DecisionKind:
        yield f"{lot}/{action}", {"letters": letters, "scope": "ticked"}, 404
        yield f"{lot}/{action}", {"letters": letters, "reason": "why", "query": "", "to": "", "assigned": "{}"}, 404
        for query in ("", f"dlq={theirs.dlq.pk}", f"group={theirs.letter.group_id}", "reason=attempts_spent"):
            yield f"{lot}/{action}", {"scope": "all", "query": query}, 200
    for query in ("", f"dlq={theirs.dlq.pk}", f"group={theirs.letter.group_id}", f"q={theirs.letter.message_id}"):
        yield f"{lot}/export", {"query": query}, 200
        sent = {"query": query, "reason": "why", "kind": "jsonl", "bodies": "on", "originals": "on"}
        yield f"{lot}/export", sent, 200
        yield f"{lot}/group-by", {"query": query, "by": "body:a"}, 200
        yield f"{lot}/edit-all", {"query": query, "scope": "all"}, 200
        yield f"{lot}/edit-all", {"query": query, "scope": "all", "path": "/a", "value": "1", "look": "1"}, 200
    yield f"{lot}/edit-all", {"letters": letters, "query": ""}, 404
    yield f"{lot}/release", {"letters": "1@1@0", "how": "to"}, 200
    yield "/admin/reprocessing/auditentry/export", {"since": "2000-01-01T00:00"}, 200
    yield "/admin/reprocessing/run/add/", {"dlq": theirs.dlq.pk, "name": "stolen", "reason": "why"}, 200
    rule = {"dlq": theirs.dlq.pk, "conditions": "[]", "position": 1, "action": "hold", "opened": "0", "do": "look"}
    yield "/admin/reprocessing/rule/add/", {"name": "stolen", **rule}, 200
    yield "/admin/reprocessing/rule/add/", {"name": "stolen", **rule, "dlq": ""}, 200
    route = {"destination": "stolen", "do": "look"}
    yield "/admin/reprocessing/notificationroute/add/", {**route, "dlqs": [theirs.dlq.name]}, 200
    yield "/admin/reprocessing/notificationroute/add/", route, 200
    yield "/admin/stop", {"reason": "why", "seen": "none"}, 403
    yield "/admin/resume", {"reason": "why", "seen": "none"}, 403


def test_no_form_of_the_strongest_role_reaches_a_row_of_another_team(
    teams: tuple[Team, Team], strongest: Client
) -> None:
    for address, sent, status in forms(teams[1]):
        answer = strongest.post(address, sent)
        assert answer.status_code == status, (address, sent)
        named = THEIRS in str(sent)
        assert named or not leaks(answer, ""), (address, sent)
    assert not Run.objects.filter(name="stolen").exists()
    assert not Rule.objects.filter(name="stolen").exists()
    assert not NotificationRoute.objects.filter(destination="stolen").exists()
    assert AuditEntry.objects.filter(letter=teams[1].letter).count() == 1
    assert set(BulkAction.objects.values_list("by", flat=True)) == {OURS, THEIRS}


def test_the_canaries_sing_for_a_person_who_sees_all_dlqs(teams: tuple[Team, Team]) -> None:
    """What is silent for a team is not silent by itself: each list, and each page of a row, says the canary."""
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    silent = set[str]()
    for model in scoped_models():
        name = f"admin:reprocessing_{model._meta.model_name}"
        listed = reverse(f"{name}_changelist")
        shown = reverse(f"{name}_change", args=[teams[1].rows[model]]) if model in teams[1].rows else listed
        for address in (listed, shown) if model not in COMMON else ():
            if THEIRS not in body(client.get(address)):
                silent.add(address)
    assert silent == set()
    assert THEIRS in body(client.get("/admin/"))
    assert THEIRS in body(client.get("/admin/board"))


def test_the_list_of_each_model_is_bare_without_its_scope(
    teams: tuple[Team, Team], strongest: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The matrix would see it: without the condition of a model, its list shows rows of the other team."""
    scopes = visible_dlqs._SCOPES
    silent = set[str]()
    for model in scoped_models():
        if model in COMMON | FOR_ALL:
            continue
        monkeypatch.setattr(visible_dlqs, "_SCOPES", {**scopes, model: lambda _: Q()})
        address = reverse(f"admin:reprocessing_{model._meta.model_name}_changelist")
        if THEIRS not in body(strongest.get(address)):
            silent.add(address)
    assert silent == {f"/admin/reprocessing/{name}/" for name in ("failuregroup", "parkedletter")}  # SQL reads these


def test_each_model_of_the_admin_says_whose_its_rows_are() -> None:
    assert set(scoped_models()) == set(visible_dlqs._SCOPES) | FOR_ALL
