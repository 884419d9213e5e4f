from __future__ import annotations

import html
import re

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

from reprocessing.models import AuditEntry, DeadLetterQueue, Letter, Payload
from tests.reprocessing.admin.parking_lot.parked_messages import LOOKS, dlq, parked, person, post

pytestmark = pytest.mark.django_db

SEES = (*LOOKS, "view_payload")


def delivered(letter: Letter) -> Letter:
    Letter.objects.filter(pk=letter.pk).update(state="delivered", reason="")
    return letter


def compared(client: Client, letter: Letter, **asked: str) -> str:
    return html.unescape(post(client, f"/admin/reprocessing/letter/{letter.pk}/compare", **({"with": ""} | asked)))


def test_the_default_is_the_last_delivered_message_of_the_same_type() -> None:
    source = dlq()
    mine = parked(source, body=b'{"type": "order.paid", "total": 17}')
    good = delivered(parked(source, body=b'{"type": "order.paid", "total": 18}'))
    delivered(parked(source, body=b'{"type": "order.sent", "total": 19}'))
    page = compared(person("ann", *SEES), mine)
    assert f'Compared with <a href="/admin/reprocessing/letter/{good.pk}/change/">{good.message_id}</a>' in page
    assert "the last delivered message of type order.paid from shop-dlq" in page
    assert ('"total": 18' in page, '"total": 17' in page, '"total": 19' in page) == (True, True, False)
    sides = re.findall(r'<li class="(?:taken-out|put-in)">(.*?)</li>', page)
    assert ('class="letter sides"' in page, sides) == (
        True, [f"\N{MINUS SIGN} last delivered ({good.message_id})", "+ this message"],
    )  # fmt: skip


def test_without_a_type_the_default_is_of_the_same_key() -> None:
    source = dlq()
    mine, good = (parked(source, key="key-7", body=b'{"total": %d}' % n) for n in (17, 18))
    Letter.objects.update(single=False, key_hash=b"key-7")
    delivered(good)
    assert "the last delivered message of the same ordering key" in compared(person("ann", *SEES), mine)


def test_without_any_it_says_what_to_enter() -> None:
    mine = parked(dlq(), body=b'{"type": "order.paid"}')
    assert "Enter the id of a message." in compared(person("ann", *SEES), mine)
    assert AuditEntry.objects.count() == 0


@pytest.mark.parametrize("field", ["message_id", "public_id"])
def test_any_message_can_be_named_and_both_views_are_recorded(field: str) -> None:
    mine, other = parked(dlq(), body=b'{"a": 1}'), parked(dlq("other-dlq"), body=b'{"a": 2}')
    page = compared(person("ann", *SEES), mine, **{"with": f" {getattr(other, field)} "})
    assert ('"a": 1' in page, '"a": 2' in page) == (True, True)
    recorded = AuditEntry.objects.order_by("letter").values_list("letter", "act", "by", "reason")
    said = ("revealed", "ann", "Compared the message with another message.")
    assert list(recorded) == [(mine.pk, *said), (other.pk, *said)]


def test_a_message_of_another_team_is_as_one_that_is_not_there() -> None:
    mine, theirs = parked(dlq(), body=b'{"a": 1}'), parked(dlq("their-dlq"), body=b'{"type": "canary"}')
    team = Group.objects.create(name="ours")
    mine.dlq.teams.set([team])
    user = User.objects.create_user("ben", is_staff=True)
    user.groups.set([team])
    user.user_permissions.set(Permission.objects.filter(codename__in=SEES))
    client = Client()
    client.force_login(user)
    told = []
    for named in (theirs.message_id, str(theirs.public_id)):
        page = compared(client, mine, **{"with": named})
        told.append((f'There is no message with the id "{named}".' in page, "canary" in page))
    assert (told, AuditEntry.objects.count()) == ([(True, False)] * 2, 0)


@pytest.mark.parametrize(
    "text", ["\0", "<script>alert(1)</script>", "9" * 500, "-1", "\u202e", "nothing"], ids=range(6)
)
def test_an_id_that_is_none_is_refused_in_words(text: str) -> None:
    mine = parked(dlq())
    page = compared(person("ann", *SEES), mine, **{"with": text})
    assert ("message" in page, text in page and "<script>alert" not in text) != (False, True)
    if text == "nothing":
        assert 'name="with" maxlength="200" value="nothing"' in page
    assert AuditEntry.objects.count() == 0


@pytest.mark.soak
def test_each_message_is_masked_by_the_rules_of_its_own_dlq() -> None:
    mine, other = parked(dlq(), body=b'{"card": "4111-canary"}'), parked(dlq("other"), body=b'{"card": "4222-canary"}')
    DeadLetterQueue.objects.filter(pk=mine.dlq_id).update(masked_fields=["card"])
    ann, ben = person("ann", *SEES), person("ben", *SEES, "reveal_payload")
    asked = {"with": other.message_id}
    page = compared(ann, mine, **asked)
    assert ("4111-canary" in page, "4222-canary" in page, "Some values are masked" in page) == (False, True, True)
    assert "4111-canary" not in compared(ann, mine, reveal_reason="ticket 17", **asked)
    assert "4111-canary" in compared(ben, mine, reveal_reason="ticket 17", **asked)
    assert AuditEntry.objects.latest("pk").reason == "ticket 17"


def test_who_may_not_see_payloads_may_not_compare() -> None:
    mine = parked(dlq())
    client = person("ann", *LOOKS)
    client.get("/admin/password_change/")
    values = {"csrfmiddlewaretoken": client.cookies["csrftoken"].value, "with": mine.message_id}
    assert client.post(f"/admin/reprocessing/letter/{mine.pk}/compare", values).status_code == 403


def test_a_deleted_payload_is_said() -> None:
    mine, other = parked(dlq(), body=b"{}"), parked(dlq("other-dlq"))
    Payload.objects.filter(letter=other).delete()
    assert "One of the two payloads was deleted." in compared(person("ann", *SEES), mine, **{"with": other.message_id})


def test_only_an_unknown_id_keeps_the_page_and_what_was_typed() -> None:
    source, ann = dlq(), person("ann", *SEES)
    mine, other = parked(source), parked(source)
    Payload.objects.filter(letter=other.pk).delete()
    address = f"/admin/reprocessing/letter/{mine.pk}/compare"
    ann.handler.enforce_csrf_checks = False
    unknown, deleted = (ann.post(address, {"with": text}) for text in ("c-7", other.message_id))
    assert (unknown.status_code, 'value="c-7"' in unknown.content.decode()) == (200, True)
    assert (deleted.status_code, deleted.headers["Location"]) == (302, f"/admin/reprocessing/letter/{mine.pk}/change/")
