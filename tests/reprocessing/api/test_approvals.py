"""What needs a second person is requested with 202, and approved or declined by another person's token."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, Permission, User

from reprocessing.domain.api.scopes import ONLY_FOR_USERS, Scope
from reprocessing.models import Approval, AuditEntry, Letter
from reprocessing.store.api.tokens import TokenRequest, make_token
from tests.reprocessing.api.callers import Program, problem, program, told
from tests.reprocessing.api.test_matrix import OPERATIONS
from tests.reprocessing.pipeline.approvals.two_people import asked_edit, limited, states

pytestmark = pytest.mark.django_db


def of(user: User, name: str, *without: Scope) -> Program:
    scopes = tuple(scope for scope in Scope if scope not in without)
    made = make_token(TokenRequest(name, scopes, user), by="root", reason="a test")
    return Program(name, made.secret)


@pytest.fixture
def ann() -> User:
    return User.objects.create_superuser("ann")


@pytest.fixture
def bob() -> Program:
    return of(User.objects.create_superuser("bob"), "bobs")


def discard(caller: Program, letters: list[Letter], key: str | None = None) -> int:
    """Ask to discard the messages, which needs a second person; return the id of the request."""
    ids = [str(letter.public_id) for letter in letters]
    looked = told(caller.post("/messages/discard", redrive_ids=ids))
    assert looked["says"][-1].startswith("This needs a second person")
    answer = caller.post("/messages/discard", redrive_ids=ids, confirm=True, key=key)
    found = told(answer, 202)
    assert (found["changed"], found["needs_approval"]) == (False, True)
    assert found["approval_url"] == f"/api/v1/approvals/{found['approval']['id']}"
    return int(found["approval"]["id"])


def test_a_discard_is_requested_by_one_and_approved_by_another(ann: User, bob: Program) -> None:
    letters, anns = limited(1, letters=3), of(ann, "anns")
    approval = discard(anns, letters, key="k1")
    assert discard(anns, letters, key="k1") == approval
    shown = told(bob.get(f"/approvals/{approval}"))
    assert (shown["state"], shown["by"], shown["messages"], shown["void_because"]) == (
        "open", "ann, API token anns", 3, None,
    )  # fmt: skip
    assert [one["id"] for one in told(bob.get("/approvals", state="open"))["items"]] == [approval]
    looked = told(bob.post(f"/approvals/{approval}/approve"))
    assert (looked["dry_run"], states(letters)) == (True, {"parked"})
    done = told(bob.post(f"/approvals/{approval}/approve", confirm=True))
    assert (done["says"], done["approval"]["state"], states(letters)) == (
        ["3 messages discarded."], "approved", {"discarded"},
    )  # fmt: skip
    entries = set(AuditEntry.objects.filter(act="discarded").values_list("by", flat=True))
    assert entries == {"ann, API token anns, approved by bob, API token bobs"}
    assert "approved and done" in problem(bob.post(f"/approvals/{approval}/approve", confirm=True), 409)


def test_to_approve_an_edit_that_releases_takes_the_permission_to_release(bob: Program) -> None:
    limited()
    row = asked_edit(release=True)
    cleo = User.objects.create_user("cleo")
    codes = ("view_all_dlqs", "view_approval", "edit_parkedletter")
    cleo.user_permissions.set(Permission.objects.filter(codename__in=codes))
    address = f"/approvals/{row.pk}/approve"
    why = problem(of(cleo, "cleos").post(address, confirm=True), 403)
    assert why.endswith("needs the permissions reprocessing.release_parkedletter.")
    told(bob.post(address, confirm=True))


def test_the_token_that_approves_needs_the_scopes_of_the_action(bob: Program) -> None:
    limited()
    row = asked_edit(release=True)
    narrow = of(User.objects.create_superuser("cleo"), "cleos", Scope.MESSAGES_RELEASE)
    for act in ("approve", "decline"):
        why = problem(narrow.post(f"/approvals/{row.pk}/{act}", confirm=True), 403)
        assert "This needs the scope messages:release" in why
    told(bob.post(f"/approvals/{row.pk}/approve", confirm=True))


@pytest.mark.soak
def test_nobody_approves_their_own_request_by_another_token(ann: User, bob: Program) -> None:
    """Two tokens of a person, the person's account, and a token that the person made for a team: one person."""
    letters = limited()
    approval = discard(of(ann, "anns"), letters)
    second = of(ann, "anns-second")
    assert "somebody else must approve it" in problem(second.post(f"/approvals/{approval}/approve", confirm=True), 403)
    told(second.post(f"/approvals/{approval}/decline", confirm=True))
    team = Group.objects.create(name="team")
    letters[0].dlq.teams.add(team)
    made = make_token(
        TokenRequest("teams", tuple(set(Scope) - set(ONLY_FOR_USERS)), teams=(team,)), by="bob", reason="a test"
    )
    approval = discard(Program("teams", made.secret), letters)
    assert "somebody else must approve it" in problem(bob.post(f"/approvals/{approval}/approve", confirm=True), 403)
    assert states(letters) == {"parked"}
    told(second.post(f"/approvals/{approval}/approve", confirm=True))
    assert states(letters) == {"discarded"}


def test_each_operation_that_changes_something_is_classified() -> None:
    """As in tests/reprocessing/pipeline/approvals/test_every_action.py: what needs a second person documents 202."""
    found = {one.id: "202" in one.answers for one in OPERATIONS if one.method == "post"}
    assert {name for name, needs in found.items() if needs} == {
        "release_messages", "discard_messages", "restore_messages", "start_bulk", "start_run", "resume_run",
        "enable_rule", "disable_rule",
    }  # fmt: skip
    assert {name for name, needs in found.items() if not needs} == {
        "stop_everything", "resume_everything", "stop_dlq", "resume_dlq", "abort_bulk_action", "plan_run", "pause_run",
        "abort_run", "approve", "decline", "assign_messages", "note_messages",
    }  # fmt: skip


def test_a_program_of_a_team_decides_nothing(ann: User) -> None:
    (letter,) = limited()
    team = Group.objects.create(name="team")
    letter.dlq.teams.add(team)
    approval = discard(of(ann, "anns"), [letter])
    for act in ("approve", "decline"):
        answer = program(*Scope, teams=(team,)).post(f"/approvals/{approval}/{act}", confirm=True)
        assert "this is a token of teams" in problem(answer, 403)
    assert Approval.objects.get().state == "open"


def test_a_request_about_what_changed_is_void(ann: User, bob: Program) -> None:
    (letter,) = limited()
    approval = discard(of(ann, "anns"), [letter])
    Letter.objects.filter(pk=letter.pk).update(state="discarded", reason="")
    shown = told(bob.get(f"/approvals/{approval}"))
    assert shown["void_because"] is not None
    assert "the request is void" in problem(bob.post(f"/approvals/{approval}/approve", confirm=True), 409)


def test_bulk_actions_and_rules_need_a_second_person_too(ann: User) -> None:
    letters, anns = limited(1, letters=3), of(ann, "anns")
    name = letters[0].dlq.name
    bulk = anns.post("/bulk-actions", action="discard", filter={"dlq": name}, confirm=True)
    assert told(bulk, 202)["approval"]["messages"] == 3
    assert states(letters) == {"parked"}
