from __future__ import annotations

import json
import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from reprocessing.domain.message.envelope import Attribute, unpack_attributes
from reprocessing.models import AuditEntry, DeadLetterQueue, Letter, Payload, Revision
from reprocessing.store.ordering import key_messages
from tests.reprocessing.admin.parking_lot.parked_messages import LOOKS, dlq, parked, person, post, tried_again

pytestmark = pytest.mark.django_db

EDITS = (*LOOKS, "view_payload", "edit_parkedletter")
REPLAYS = (*EDITS, "release_parkedletter")
SCRIPT = "<script>alert(1)</script>"
BODY = b'{\n  "card": "4111-canary",\n  "total": 1\n}'


@pytest.fixture
def client() -> Client:
    """A person who may edit, but not release."""
    return person("ann", *EDITS)


@pytest.fixture
def letter() -> Letter:
    return parked(dlq(), body=BODY)


def address(letter: Letter) -> str:
    return f"/admin/reprocessing/parkedletter/{letter.pk}/edit"


def field(page: str, name: str) -> str:
    """What a field of a page holds, as a browser would send it."""
    found = re.search(rf'<textarea[^>]* name="{name}"[^>]*>\n?(.*?)</textarea>', page, re.DOTALL) or re.search(
        rf'<input[^>]* name="{name}" value="([^"]*)"', page
    )
    return unescape(found[1]).replace("\r\n", "\n").replace("\n", "\r\n") if found else ""


def filled(page: str, **values: object) -> dict[str, Any]:
    """The form of a page, its fields as they stand but for these."""
    names = ["opened", "body", "form-TOTAL_FORMS", "form-INITIAL_FORMS", "form-MIN_NUM_FORMS", "form-MAX_NUM_FORMS"]
    names += [f"form-{row}-{part}" for row in range(12) for part in ("name", "type", "value")]
    return {name: text for name in names if (text := field(page, name))} | {"look": "1"} | values


def opened(client: Client, letter: Letter) -> str:
    return post(client, address(letter), open="1")


def looked(client: Client, letter: Letter, **values: object) -> str:
    return post(client, address(letter), **filled(opened(client, letter), **values))


def done(client: Client, letter: Letter, page: str, **values: object) -> str:
    said = {"written": field(page, "written"), "do": "1", "reason": "a typo", "then": "keep"}
    return post(client, address(letter), **{**said, **values})


def mended(total: int = 2) -> str:
    return BODY.decode().replace('"total": 1', f'"total": {total}').replace("\n", "\r\n")


def changes(page: str) -> list[tuple[str, str]]:
    found = re.findall(
        r'<div class="(put-in|taken-out)"><span class="mark">.</span><span class="text">(.*?)</span>', page
    )
    return [(way, unescape(text)) for way, text in found]


@pytest.mark.soak
def test_edit_has_a_preview_and_keeps_the_original(client: Client) -> None:
    letter = parked(dlq(), body=BODY, attributes={"note": Attribute("String", "first")})
    page = looked(client, letter, body=mended(), **{"form-0-value": "second"})
    assert changes(page) == [
        ("taken-out", '  "total": 1'), ("put-in", '  "total": 2'),
        ("taken-out", "note (String): first"), ("put-in", "note (String): second"),
    ]  # fmt: skip
    assert Revision.objects.count() == 0
    assert "Edit 1 is saved. The message stays parked" in done(client, letter, page)
    revision = Revision.objects.get()
    assert (bytes(revision.body), revision.by, revision.reason) == (BODY.replace(b"1\n", b"2\n"), "ann", "a typo")
    assert unpack_attributes(bytes(revision.attributes)) == {"note": Attribute("String", "second")}
    assert bytes(Payload.objects.get(letter=letter).body) == BODY
    assert [(one.act, one.by) for one in AuditEntry.objects.order_by("id")] == [("revealed", "ann"), ("edited", "ann")]
    assert "canary" not in str(AuditEntry.objects.values_list("before", "after"))


@pytest.mark.soak
def test_edited_message_is_released(letter: Letter) -> None:
    client = person("ann", *REPLAYS)
    told = done(client, letter, looked(client, letter, body=mended()), then="replay")
    assert "Edit 1 is saved. The message is queued." in told
    assert Letter.objects.get(pk=letter.pk).state == "waiting"


@pytest.mark.soak
def test_edited_parked_message_has_its_buttons(letter: Letter) -> None:
    client = person("ann", *REPLAYS)
    told = done(client, letter, looked(client, letter, body=mended()))
    assert re.findall(r'value="\S+"><button type="submit" class="button default">(Release[^<]*)<', told) == ["Release…"]


def test_without_release_permission_it_stays_parked(client: Client, letter: Letter) -> None:
    page = looked(client, letter, body=mended())
    assert 'value="replay"' not in page
    assert "Select a valid choice" in done(client, letter, page, then="replay")
    assert Letter.objects.get(pk=letter.pk).state == "parked"


@pytest.mark.parametrize("body", [b"a\r\nb\r\n", b"\n\na\nb", b"  a  ", "\u00e9\U0001f600".encode(), b"a\tb"])
def test_unchanged_text_is_unchanged_byte_for_byte(body: bytes, client: Client) -> None:
    letter = parked(dlq(), body=body, attributes={"note": Attribute("String", "\n x\r\n ".replace("\r\n", "\n"))})
    assert "<li>Nothing is changed.</li>" in looked(client, letter)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"\xff\x00", "it is not text (not UTF-8)"),
        (b"a\r\nb\nc", "it has different line ends, which a browser would make equal"),
        (b"a\x0bb", "it has characters that a web page cannot show and send back"),
    ],
)
def test_body_that_a_browser_would_change_is_locked(body: bytes, why: str, client: Client) -> None:
    letter = parked(dlq(), body=body, attributes={"note": Attribute("String", "first")})
    assert f"The body cannot be edited here: {why}." in opened(client, letter)
    page = looked(client, letter, body="something else", **{"form-0-value": "second"})
    assert changes(page) == [("taken-out", "note (String): first"), ("put-in", "note (String): second")]


def test_broken_json_is_refused_with_its_position(letter: Letter) -> None:
    page = looked(person("ann", *EDITS), letter, body='{\r\n  "card": }')
    assert "The body was JSON and no longer is: Expecting value, line 2, column 11." in unescape(page)
    assert field(page, "body") == '{\r\n  "card": }'


def test_white_space_difference_is_noted() -> None:
    letter = parked(dlq(), body=b'{"total":1}')
    assert "Only white space differs." in looked(person("ann", *EDITS), letter, body='{"total": 1}')


def test_attributes_are_editable_removable_or_locked() -> None:
    attributes = {
        "traceparent": Attribute("String", "00-canary"), "customer": Attribute("String", "c-7"),
        "note": Attribute("String", "first"), "raw": Attribute("Binary", b"\x00"),
    }  # fmt: skip
    letter = parked(dlq(), body=BODY, attributes=attributes)
    DeadLetterQueue.objects.update(ordering_key="attribute:customer")
    client = person("ann", *EDITS)
    page = opened(client, letter)
    assert [field(page, f"form-{row}-name") for row in range(3)] == ["customer", "note", ""]
    assert "The ordering key is read from it." in page
    assert "it links the message to its trace" in page
    assert "raw: 1 byte, which cannot be typed" in page
    told = looked(client, letter, gone="raw", **{"form-1-remove": "on"})
    assert changes(told) == [
        ("taken-out", "note (String): first"),
        ("taken-out", "raw (Binary): \x00".replace("\x00", "<U+0000>")),
    ]


def test_change_of_a_key_takes_a_tick(client: Client) -> None:
    letter = parked(dlq(), body=BODY, attributes={"customer": Attribute("String", "c-7")})
    DeadLetterQueue.objects.update(ordering_key="attribute:customer")
    page = looked(client, letter, **{"form-0-value": "c-8"})
    assert "This changes attribute:customer, from which the ordering key is read." in page
    assert "Tick this box, or undo the change." in done(client, letter, page)
    assert Revision.objects.count() == 0
    done(client, letter, page, knowing="on")
    assert Revision.objects.count() == 1


def test_duplicate_attribute_name_is_refused() -> None:
    letter = parked(dlq(), body=BODY, attributes={"note": Attribute("String", "first")})
    values = {"form-1-name": "note", "form-1-type": "String", "form-1-value": "x"}
    assert "An attribute has this name already." in looked(person("ann", *EDITS), letter, **values)


@pytest.mark.soak
def test_second_editor_is_told_who_was_first(letter: Letter) -> None:
    ann, ben = person("ann", *EDITS), person("ben", *EDITS)
    first, second = looked(ann, letter, body=mended(2)), looked(ben, letter, body=mended(3))
    done(ann, letter, first)
    told = unescape(done(ben, letter, second))
    assert re.search(
        r'Nothing was done: it has changed since you opened it: ann edited it at [\d:]+ UTC \("a typo"\)', told
    )
    assert [one.by for one in Revision.objects.all()] == ["ann"]


@pytest.mark.soak
def test_released_message_is_not_edited(letter: Letter) -> None:
    ann, ben = person("ann", *REPLAYS), person("ben", *EDITS)
    page = opened(ben, letter)
    done(ann, letter, looked(ann, letter, body=mended()), then="replay")
    told = post(ben, address(letter), **filled(page, body=mended(3)))
    assert "Open the message again to edit it." in told


@pytest.mark.soak
def test_a_page_of_somebody_else_is_no_page() -> None:
    letter, other = parked(dlq("a"), body=BODY), parked(dlq("b"), body=BODY)
    ann, ben = person("ann", *EDITS), person("ben", *EDITS)
    page = looked(ann, letter, body=mended())
    for told in (done(ben, letter, page), done(ann, other, page), done(ann, letter, page, written="x")):
        assert "this page is too old, or belongs to somebody else" in told
    assert Revision.objects.count() == 0


def test_preview_needs_an_opened_form(letter: Letter) -> None:
    told = post(person("ann", *EDITS), address(letter), look="1", body="{}")
    assert ("too old" in told, "4111-canary" in told) == (True, False)


@pytest.mark.parametrize("lacking", ["view_payload", "edit_parkedletter", "view_parkedletter"])
def test_editing_takes_all_its_permissions(lacking: str, letter: Letter) -> None:
    client = person("ann", *(one for one in EDITS if one != lacking))
    values = {"csrfmiddlewaretoken": "", "open": "1"}
    assert client.post(address(letter), values).status_code == 403
    if lacking != "view_parkedletter":
        page = client.get(f"/admin/reprocessing/parkedletter/{letter.pk}/change/").content.decode()
        why = "needs the permissions to edit messages and to see payloads"
        assert (address(letter) in page, why in page) == (False, True)


def test_page_lists_edits_and_their_attempts(client: Client, letter: Letter) -> None:
    done(client, letter, looked(client, letter, body=mended()))
    tried_again(letter)
    page = client.get(f"/admin/reprocessing/letter/{letter.pk}/change/").content.decode()
    assert page.count("sent edit 1; ") == 1
    cells = re.sub(r"<td [^>]*>", "<td>", page)
    assert re.search(r"<td>1</td>.*<td>ann</td><td>a typo</td><td>\d+</td><td>2</td>", cells)
    assert '<span class="chip chip-warm">edited</span>' in page


@pytest.mark.soak
def test_comparison_with_the_captured_message_is_recorded(client: Client, letter: Letter) -> None:
    done(client, letter, looked(client, letter, body=mended()))
    page = post(client, f"/admin/reprocessing/letter/{letter.pk}/compare", no="1")
    assert changes(page) == [("taken-out", '  "total": 1'), ("put-in", '  "total": 2')]
    last = AuditEntry.objects.order_by("id").last()
    assert last
    assert (last.act, last.by, last.after) == ("revealed", "ann", {"revision": 1})
    for no in ("2", "", "9" * 30, "x"):
        told = post(client, f"/admin/reprocessing/letter/{letter.pk}/compare", no=no)
        assert "There is no such edit." in told


@pytest.mark.soak
def test_shown_payload_is_the_edited_one(client: Client, letter: Letter) -> None:
    done(client, letter, looked(client, letter, body=mended()))
    there = f"/admin/reprocessing/letter/{letter.pk}"
    assert "&quot;total&quot;: 2" in post(client, f"{there}/reveal")
    values = {"csrfmiddlewaretoken": client.cookies["csrftoken"].value}
    got = [client.post(f"{there}/body", values | more).content for more in ({}, {"of": "captured"})]
    assert got == [BODY.replace(b"1\n", b"2\n"), BODY]


@pytest.mark.soak
def test_no_script_runs_on_edit_pages() -> None:
    hostile = json.dumps({SCRIPT: SCRIPT}).encode()
    letter = parked(dlq(), key=SCRIPT, body=hostile, attributes={"a": Attribute(f"String.{SCRIPT}", SCRIPT)})
    DeadLetterQueue.objects.update(public_fields=["*"])
    client = person("ann", *EDITS)
    form = opened(client, letter)
    page = post(
        client, address(letter), **filled(form, body=json.dumps({SCRIPT: f"{SCRIPT}2"}), **{"form-0-type": "String"})
    )
    kept = done(client, letter, page, reason=SCRIPT)
    there = f"/admin/reprocessing/letter/{letter.pk}"
    seen = [form, page, kept, post(client, f"{there}/reveal"), post(client, f"{there}/compare", no="1")]
    assert Revision.objects.count() == 1
    assert [SCRIPT in one for one in seen] == [False] * 5
    assert ["&lt;script&gt;" in one for one in seen] == [True] * 5


def test_titles_name_the_type_and_the_key() -> None:
    letter = parked(dlq(), key="account-0030", body=b'{"type": "invoice.sent", "total": 1}')
    ann = person("ann", *EDITS)
    page = opened(ann, letter)
    preview = post(ann, address(letter), **filled(page, body='{"type": "invoice.sent", "total": 2}'))
    titles = [unescape("".join(re.findall(r"<h1>(.*?)</h1>", told))) for told in (page, preview)]
    name = "invoice.sent, key account-0030"
    assert titles == [f"Edit {name}", f"Preview of the edit of {name}"]
    other = parked(dlq("other-dlq"), body=b"1")
    assert "<h1>Edit a message of other-dlq</h1>" in opened(ann, other)


@pytest.mark.parametrize(("later", "said"), [(0, ""), (1, "1 later message of this key is"), (2, "2 later messages")])
def test_preview_says_how_many_later_messages_are_delivered(
    later: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, ann = dlq(), person("ann", *EDITS)
    letter = parked(source, key="account-7", body=BODY)
    for _ in range(later):
        delivered = parked(source, key="account-7")
        Letter.objects.filter(pk=delivered.pk).update(state="delivered", reason="")
    Letter.objects.update(single=False, key_hash=b"of account-7")
    page = looked(ann, letter, body=mended())
    told = re.search(r"<strong>((?:At least )?\d later mess.*?)</strong>", page)
    after = "it" if later == 1 else "them"
    assert (told[1] if told else "").startswith(said)
    assert (f"already delivered; the consumer gets this message after {after}." in page) == bool(later)
    monkeypatch.setattr(key_messages, "COUNTED_AT_MOST", 1)
    assert ("At least 2 later" in looked(ann, letter, body=mended())) == (later == 2)
