from __future__ import annotations

import html
from datetime import timedelta
from html.parser import HTMLParser
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client

from reprocessing.admin.parking_lot import bulk_action_pages
from reprocessing.domain.message.safe_text import visible
from reprocessing.models.letter import ParkedLetter
from tests.reprocessing.admin.site.attacks.hostile import SHORT, TEXTS, TOGETHER, places, write_everywhere
from tests.reprocessing.admin.site.open_pages import KINDS, furnished, pages

pytestmark = [pytest.mark.django_db, pytest.mark.soak]

#: Attributes whose values may be what somebody wrote, and those that lead somewhere.
SAID = {"value", "title", "alt", "placeholder", "content", "datetime", "aria-label", "for", "id", "name"}
LEADING = {"href", "src", "action", "formaction", "hx-get", "hx-post", "xlink:href", "data", "srcset", "poster"}
READ = {"title", "alt", "placeholder", "aria-label"}
RUNNING = {"script", "style", "iframe", "object", "embed", "base", "svg", "math", "form", "button", "meta", "img"}
HARMLESS = "plain words and no more"


class Nodes(HTMLParser):
    """Every element of a page, with all that could run, lead or belong to another."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[object] = []
        self._in_script = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_script = tag == "script"
        self.found.append((tag, sorted((name, _kept(name, value or "")) for name, value in attrs)))

    def handle_data(self, data: str) -> None:
        if self._in_script:
            self.found.append(data)

    def handle_endtag(self, tag: str) -> None:
        self._in_script = False
        self.found.append(f"/{tag}")

    def handle_comment(self, data: str) -> None:
        self.found.append(f"<!--{data}")


class Words(HTMLParser):
    """What a page says to be read: what a form would send again, or offers by names that have an alphabet, is not."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._in_form = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_form = tag in {"textarea", "option"}
        self.found += [value or "" for name, value in attrs if name in READ]

    def handle_endtag(self, tag: str) -> None:
        self._in_form = False

    def handle_data(self, data: str) -> None:
        if not self._in_form:
            self.found.append(data)


def deceiving(page: str) -> list[str]:
    """The words of a page that hold what is not seen, or what turns others around."""
    parser = Words()
    parser.feed(page)
    parser.close()
    return [one for one in parser.found if visible(one) != one]


def _kept(name: str, value: str) -> str:
    if name in SAID or name.startswith("data-"):
        return ""
    if name in LEADING:
        where = urlsplit(value)
        return f"{where.scheme}://{where.netloc}"
    return value


def nodes(page: str) -> list[object]:
    parser = Nodes()
    parser.feed(page)
    parser.close()
    return parser.found


def running(page: str) -> list[tuple[str, list[tuple[str, str]]]]:
    """The nodes that could run, lead or send something: an edit's form has other fields for other attributes."""
    found = [one for one in nodes(page) if isinstance(one, tuple)]
    return [
        (tag, given)
        for tag, given in found
        if tag in RUNNING
        or any(name in LEADING or name.startswith(("on", "style", "srcdoc", "hx-")) for name, _ in given)
    ]


def test_there_are_many_texts_and_many_places() -> None:
    assert len(TEXTS) >= 40
    assert len({(one.table, one.column) for one in places()}) >= 50
    assert all("\n" not in one and "\0" not in one for one in TEXTS.values())


def test_hostile_texts_would_be_noticed() -> None:
    """Each of them, set into a page as it is, makes other nodes of it; but for those that are for other readers."""
    frames = ("<p>{}</p>", '<a title="{}">x</a>', "<a title='{}'>x</a>", '<a href="{}">x</a>',
              "<title>{}</title>", "<textarea>{}</textarea>")  # fmt: skip
    inert = {
        name for name, text in TEXTS.items()
        if all(nodes(one.format(text)) == nodes(one.format(HARMLESS)) for one in frames)
    }  # fmt: skip
    assert inert == {
        "Django's templates", "turned around", "an entity", "wide quotes", "a private character",
        "out of a template string",
    }  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_texts_add_no_nodes(kind: str, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_action_pages, "_UNUSUAL", timedelta(hours=1))  # a page says so of what nobody takes up
    furnished()
    client.force_login(User.objects.create_superuser("root"))
    opened = []
    for text, short in ((HARMLESS, HARMLESS), (TOGETHER, SHORT)):
        assert write_everywhere(text, short) > 100
        opened.append(dict(pages(client, kind)))
    calm, hostile = opened
    assert hostile
    assert {name: nodes(page) for name, page in hostile.items()} == {name: nodes(page) for name, page in calm.items()}
    found = {name: deceiving(page) for name, page in hostile.items()}
    assert [(name, words[0][-300:]) for name, words in found.items() if words] == []


def test_payloads_are_only_displayed(client: Client) -> None:
    furnished()
    client.force_login(User.objects.create_superuser("root"))
    letter = ParkedLetter.objects.earliest("pk")
    address = f"/admin/reprocessing/parkedletter/{letter.pk}"
    shown = []
    for text, short in ((HARMLESS, HARMLESS), (TOGETHER, SHORT)):
        before = transaction.savepoint()
        write_everywhere(text, short)
        pages = [client.post(f"{address}/reveal"), client.post(f"{address}/edit", {"open": "1"})]
        told = [html.unescape(page.content.decode()) for page in pages]
        assert (visible(text) in told[0], text in told[1]) == (True, True)  # an edit begins with what there is
        shown.append([[one for one in running(page.content.decode()) if not copies(one)] for page in pages])
        transaction.savepoint_rollback(before)  # that somebody looked is a row of the next page
    assert shown[0] == shown[1]


def copies(node: tuple[str, list[tuple[str, str]]]) -> bool:
    """Whether a node is a button that copies: a text with hidden characters has none, since it is shown otherwise."""
    return "data-copy" in dict(node[1])


def test_searches_are_only_displayed(client: Client) -> None:
    furnished()
    client.force_login(User.objects.create_superuser("root"))
    for address in ("/admin/login/?next={}", "/admin/reprocessing/{}/", "/admin/{}", "/{}"):
        for text in (TOGETHER, SHORT):
            page = client.get(address.format(text)).content.decode()
            assert nodes(page) == nodes(client.get(address.format(HARMLESS)).content.decode())
