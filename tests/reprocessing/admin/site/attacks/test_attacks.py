from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from reprocessing.models import AuditEntry, Letter
from reprocessing.store.rights import roles
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, parked
from tests.reprocessing.admin.site.test_matrix import ACTIONS, EDITOR

pytestmark = [pytest.mark.django_db, pytest.mark.soak]


def editor(*, careful: bool = False) -> Client:
    """Somebody who may see payloads; `careful`: a browser that must show the mark of its session."""
    roles.update_groups()
    user = User.objects.create_user("ann", is_staff=True, password="a pass phrase")
    user.groups.set(Group.objects.filter(name=EDITOR))
    client = Client(enforce_csrf_checks=careful)
    client.force_login(user)
    return client


def test_no_page_of_others_has_an_action_done() -> None:
    ann = editor(careful=True)
    named = ["letter", "group", "dlq", "rule", "run", "operation", "lane", "target", "breaker", "route", "mark"]
    named += ["approval", "api_token"]
    its = dict.fromkeys(named, 1)
    found = {there: ann.post(there.format(**its), {"reason": "x", "seen": "none"}) for there in ACTIONS}
    assert {there for there, answer in found.items() if answer.status_code != 403} == set()
    assert all("This page has expired" in answer.content.decode() for answer in found.values())
    assert not AuditEntry.objects.exists()


def payloads(letter: Letter) -> list[tuple[str, dict[str, str]]]:
    at = f"/admin/reprocessing/parkedletter/{letter.pk}"
    bodies = {"reason": "an audit", "query": "", "kind": "jsonl", "bodies": "on"}
    return [
        (f"{at}/reveal", {}), (f"{at}/body", {}), (f"{at}/edit", {"open": "1"}),
        ("/admin/reprocessing/parkedletter/export", bodies),
        ("/admin/reprocessing/parkedletter/edit-all", {"scope": "all", "path": "/card", "value": "1", "look": "1"}),
        ("/admin/reprocessing/parkedletter/group-by", {"by": "body:card"}),
    ]  # fmt: skip


def test_an_answer_with_a_payload_is_kept_by_no_cache_and_framed_by_no_page() -> None:
    ann, letter = editor(), parked(dlq(), body=b'{"card": "4111-canary"}')
    for there, sent in payloads(letter):
        answer = ann.post(there, sent)
        assert b"4111-canary" in b"".join(answer), there
        assert "no-store" in answer.headers["Cache-Control"], there
        framed = {one: answer.headers[one] for one in ("X-Frame-Options", "X-Content-Type-Options", "Referrer-Policy")}
        assert framed == {
            "X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin",
        }, there  # fmt: skip


def test_whoever_loses_a_role_loses_what_it_could_with_the_next_page() -> None:
    ann, letter = editor(), parked(dlq())
    User.objects.get().groups.clear()
    assert {ann.post(there, sent).status_code for there, sent in payloads(letter)} == {403}
    User.objects.update(is_active=False)
    assert ann.get("/admin/rights").headers["Location"].startswith("/admin/login/")


@pytest.mark.parametrize(
    "there", ["//evil.invalid/", "https://evil.invalid/", "/\\evil.invalid", "javascript:x", "\thttps:evil"]
)
def test_nobody_is_led_elsewhere_by_logging_in(there: str) -> None:
    editor()
    answer = Client().post("/admin/login/", {"username": "ann", "password": "a pass phrase", "next": there})
    assert (answer.status_code, answer.headers["Location"]) == (302, "/admin/")
