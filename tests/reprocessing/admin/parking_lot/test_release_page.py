from __future__ import annotations

import html
import re
from datetime import timedelta

import pytest

from reprocessing.admin.parking_lot.decision import pack_messages
from reprocessing.domain.lifecycle import ParkedReason
from reprocessing.models import DeadLetterQueue, Letter, Revision, Rule, Source
from tests.reprocessing.admin.parking_lot.parked_messages import DECIDES, LOOKS, dlq, parked, person, post

pytestmark = pytest.mark.django_db
LOT = "/admin/reprocessing/parkedletter/"


def _edited(letter: Letter, *, after: timedelta) -> None:
    """Edit a letter this long after it was parked."""
    assert letter.finished_at
    edit = Revision.objects.create(
        letter=letter, no=1, body=b"{}", attributes=b"", body_hash=b"a", previous_body_hash=b"b", size=2, by="ann",
        reason="a test", at=letter.finished_at + after,
    )  # fmt: skip
    Letter.objects.filter(pk=letter.pk).update(revision=edit)


def _warning(page: str) -> str:
    found = re.search(r"<p><strong>(\d+ messages? \w+ unchanged since .*?)</strong></p>", page)
    return found[1] if found else ""


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("reason", ["attempts_spent", "quarantined"])
def test_release_warns_of_messages_that_fail_again(reason: str, n: int) -> None:
    source, second = dlq(), timedelta(seconds=1)
    letters = [parked(source, reason=reason) for _ in range(3)]
    _edited(letters[0], after=second)
    _edited(letters[1], after=second if n == 1 else -second)
    letters.append(parked(source, reason="stale"))
    ann = person("ann", *DECIDES)
    ticked = post(ann, f"{LOT}release", letters=pack_messages(Letter.objects.all()))
    whole = post(ann, f"{LOT}release", scope="all", query="")
    told = {
        1: "1 message is unchanged since it was parked. If the consumer is not fixed, it fails again",
        2: "2 messages are unchanged since they were parked. If the consumer is not fixed, they fail again",
    }
    assert [_warning(page) for page in (ticked, whole)] == [f"{told[n]} and can open the circuit breaker."] * 2
    assert _warning(post(ann, f"{LOT}discard", scope="all", query="")) == ""


def test_release_does_not_warn_of_edited_messages_and_other_reasons() -> None:
    source = dlq()
    parked(source, reason="stale")
    _edited(parked(source), after=timedelta(0))
    page = post(person("ann", *DECIDES), f"{LOT}release", scope="all", query="")
    assert ("2 messages" in page, _warning(page)) == (True, "")


def _quarantined(source: Source, *rules: str) -> list[Letter]:
    """Messages that these rules quarantined; an empty name: the rule was deleted."""
    letters = [parked(source, reason="quarantined") for _ in rules]
    for letter, name in zip(letters, rules, strict=True):
        rule = Rule.objects.get_or_create(name=name, action="quarantine", created_by="ann")[0] if name else None
        Letter.objects.filter(pk=letter.pk).update(rule=rule, route="quarantine")
    return letters


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(
    ("rules", "others", "who", "then"),
    [
        (["acme", "acme"], 1, "2 of these 3 messages were quarantined by the rule acme", "this rule, them, too"),
        (["acme"], 2, "1 of these 3 messages was quarantined by the rule acme", "this rule, it, too"),
        (["b", "a"], 0, "All 2 messages were quarantined by the rules a, b", "these rules, them"),
        (["acme", ""], 1, "2 of these 3 messages were quarantined by the rule acme and 1 other rule",
         "these rules, them, too"),
        ([""], 0, "This message was quarantined by a rule", "this rule, it"),
        ([*"abcdefg"], 1, "7 of these 8 messages were quarantined by the rules a, b, c, d, e and 2 other rules",
         "these rules, them, too"),
        ([], 2, "", ""),
    ],
)  # fmt: skip
def test_release_warns_first_of_quarantined_messages(
    *, rules: list[str], others: int, who: str, then: str, whole: bool
) -> None:
    rule, them, *too = then.split(", ") if then else ("", "")
    sent = f"{'It is' if them == 'it' else 'They are'} sent{', too' if too else ''}"
    does = "does" if rule == "this rule" else "do"
    said = f"{who}. {sent}: {rule} {does} not quarantine {them} again." if who else ""
    source, ann = dlq(), person("ann", *DECIDES)
    _quarantined(source, *rules)
    for _ in range(others):
        parked(source)
    asked = {"scope": "all", "query": ""} if whole else {"letters": pack_messages(Letter.objects.all())}
    page = post(ann, f"{LOT}release", **asked)
    card = page.partition('<div class="card card-wary" role="alert">')[2].partition("</div>")[0]
    assert re.findall("<p><strong>(.*?)</strong></p>", card) == ([said] if said else [])
    assert ("Release only the others…" in card) is bool(rules and others)
    assert not said or page.index(card) < page.index("<article")
    assert "quarantined by" not in post(ann, f"{LOT}discard", **asked)


def test_release_of_more_messages_than_are_counted_names_a_least_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reprocessing.store.parking_lot.filtered_letters.MAX_COUNT", 2)
    source, ann = dlq(), person("ann", *DECIDES)
    _quarantined(source, "acme", "acme", "acme", "acme")
    page = post(ann, f"{LOT}release", scope="all", query="")
    said = "At least 3 of these 2+ messages were quarantined by the rule acme. They are sent, too: this rule does not"
    assert said in page
    assert "Release only the others…" in page


def test_release_offers_only_messages_that_are_still_parked() -> None:
    source, ann = dlq(), person("ann", *DECIDES)
    _quarantined(source, "acme")
    released = parked(source)
    asked = {"letters": pack_messages(Letter.objects.all())}
    Letter.objects.filter(pk=released.pk).update(state="waiting", reason="", finished_at=None)
    page = post(ann, f"{LOT}release", **asked)
    assert "This message was quarantined by the rule acme. It is sent: this rule" in page
    assert "Release only the others…" not in page


@pytest.mark.parametrize("whole", [True, False])
def test_release_offers_the_same_release_without_quarantined_messages(*, whole: bool) -> None:
    source, ann = dlq(), person("ann", *DECIDES)
    _quarantined(source, "acme", "acme")
    parked(source, reason="stale")
    parked(source)
    asked = {"scope": "all", "query": ""} if whole else {"letters": pack_messages(Letter.objects.all())}
    page = post(ann, f"{LOT}release", how="at", **asked)
    card = page.partition('<div class="card card-wary" role="alert">')[2].partition("</form>")[0]
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', card))
    fields = {name: html.unescape(value) for name, value in fields.items() if name != "csrfmiddlewaretoken"}
    assert (fields["how"], "scope" in fields) == ("at", whole)
    page = post(ann, f"{LOT}release", **fields)
    counts = re.findall(r"<li><b>(\d+)</b> <span>shop-dlq: (.*?)</span></li>", page)
    assert (sorted(counts), "quarantined by" in page) == (
        [("1", ParkedReason.ATTEMPTS_SPENT.label), ("1", ParkedReason.STALE.label)], False,
    )  # fmt: skip


def test_release_folds_the_sentences_about_mode_automatic() -> None:
    letter = parked(dlq())
    DeadLetterQueue.objects.update(mode="automatic")
    page = post(person("ann", *DECIDES), f"{LOT}release", letters=pack_messages([letter]))
    folded = re.search(r"<details><summary>More attempts in mode automatic</summary>(.*?)</details>", page)
    assert folded
    assert (page.count("In mode automatic"), "In mode automatic" in folded[1]) == (1, True)


def test_page_of_a_parked_message_opens_its_release_and_discard() -> None:
    letter = parked(dlq())
    address = f"/admin/reprocessing/letter/{letter.pk}/change/"
    page, viewed = (person(name, *may).get(address).content.decode() for name, may in (("a", DECIDES), ("b", LOOKS)))
    for action in ("release", "discard"):
        form = f'<form method="post" action="{LOT}{action}">'
        assert (page.count(form), viewed.count(form)) == (1, 0)
        assert f"It needs the permission to {action} parked messages" in viewed
    assert f'name="letters" value="{pack_messages([letter])}"' in page
    assert "restore" not in page
