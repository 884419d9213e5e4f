from __future__ import annotations

import re
from uuid import uuid4

import pytest
from pytest_django import DjangoAssertNumQueries

from reprocessing.admin.parking_lot import bulk_action_pages
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.models import AuditEntry, Breaker, BulkAction, BulkActionKind, DeadLetterQueue, Letter, Run, Target
from reprocessing.pipeline.parking_lot import run_bulk_actions
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.parking_lot import bulk_actions
from reprocessing.store.search import late_letters
from tests.reprocessing.admin.parking_lot.parked_messages import DECIDES, HOUR, LOOKS, dlq, parked, person, post
from tests.reprocessing.admin.parking_lot.test_parking_lot import messages

pytestmark = pytest.mark.django_db
DESK = "/admin/reprocessing/bulkaction/"
MAY = (*DECIDES, "view_bulkaction")


def _asked(act: BulkActionKind = BulkActionKind.DISCARD, **arguments: object) -> BulkAction:
    bulk_actions.create(uuid4(), act, MessageFilter(), arguments, by="ann", reason="<b>test data</b>")
    return BulkAction.objects.latest("id")


def _facts(page: str) -> dict[str, str]:
    return dict(re.findall(r"<dt>([^<]*)</dt><dd>([^<]*)</dd>", page))


def test_page_shows_live_progress() -> None:
    source = dlq()
    for _ in range(3):
        parked(source)
    operation = _asked()
    client = person("ben", *MAY)
    page = client.get(f"{DESK}{operation.pk}/change/").content.decode()
    assert (_facts(page), f'hx-get="{DESK}{operation.pk}/progress"' in page) == (
        {"Discarded": "0", "Skipped": "0", "Remaining": "3"}, True,
    )  # fmt: skip
    assert ("&lt;b&gt;test data" in page, "<b>test data" in page) == (True, False)
    parked(source)
    run_bulk_actions.run_bulk_action(operation.pk, seconds=9)
    part = client.get(f"{DESK}{operation.pk}/progress").content.decode()
    assert {name: _facts(part)[name] for name in ("Discarded", "Skipped")} == {"Discarded": "3", "Skipped": "0"}
    assert ("hx-get" in part, "1 message matched the filter only after the start" in part) == (False, True)


def test_paused_run_is_named() -> None:
    source = dlq()
    letter = parked(source)
    run = Run.objects.create(name="later", dlq=letter.dlq, state="paused", stopped_by="ann", why="it rains")
    Letter.objects.filter(pk=letter.pk).update(run=run)
    operation = _asked(BulkActionKind.RELEASE)
    run_bulk_actions.run_bulk_action(operation.pk, seconds=9)
    part = person("ben", *MAY).get(f"{DESK}{operation.pk}/progress").content.decode()
    assert (_facts(part)["Released"], "nothing is sent until somebody resumes it" in part) == ("1", True)


def _released(letters: int) -> tuple[BulkAction, list[Letter]]:
    """Released messages, queued for the target of their DLQ."""
    source = dlq()
    them = [parked(source) for _ in range(letters)]
    run = Run.objects.create(name="now", dlq=them[0].dlq, state="running")
    Letter.objects.filter(pk__in=[one.pk for one in them]).update(run=run)
    operation = _asked(BulkActionKind.RELEASE)
    run_bulk_actions.run_bulk_action(operation.pk, seconds=9)
    return operation, them


def test_released_messages_are_followed_to_their_ends() -> None:
    operation, (first, second, third) = _released(3)
    client = person("ben", *MAY)
    part = client.get(f"{DESK}{operation.pk}/progress").content.decode()
    assert (_facts(part)["Queued"], "hx-get" in part) == ("3", True)
    ended = {"finished_at": database_now(), "lane": None}
    Letter.objects.filter(pk__in=[first.pk, second.pk]).update(state="delivered", **ended)
    Letter.objects.filter(pk=third.pk).update(state="parked", reason="attempts_spent", **ended)
    part = client.get(f"{DESK}{operation.pk}/progress").content.decode()
    facts = _facts(part)
    assert (facts["Delivered"], facts["Parked again"], "Queued" in facts, "hx-get" in part) == ("2", "1", False, False)


def _head(page: str) -> str:
    """The title of the page's first card, and the figure beside it."""
    found = re.search(r"<h2>([^<]*)</h2>\s*<span class=\"chip[^>]*>([^<]*)<", page)
    return " ".join(found.groups()) if found else ""


@pytest.mark.parametrize(
    ("state", "attempts", "fails"),
    [
        ("waiting", 0, False), ("waiting", 1, True), ("awaiting", 1, False), ("awaiting", 2, True),
        ("parked", 1, True), ("parked", 0, False), ("delivered", 2, False),
    ],
)  # fmt: skip
def test_a_release_is_not_said_to_be_done_while_its_messages_fail_again(
    state: str, attempts: int, *, fails: bool
) -> None:
    operation, (first, second) = _released(2)
    first.refresh_from_db()
    is_open = state in {"waiting", "awaiting"}
    ended = {} if is_open else {"finished_at": database_now(), "lane": None}
    reason = "attempts_spent" if state == "parked" else ""
    tried = first.attempts_before_release + attempts
    Letter.objects.filter(pk=first.pk).update(state=state, attempts=tried, reason=reason, **ended)
    Letter.objects.filter(pk=second.pk).update(state="delivered", finished_at=database_now(), lane=None)
    page = person("ben", *MAY).get(f"{DESK}{operation.pk}/change/").content.decode()
    assert _head(page) == "Released 2 of 2"
    assert ("<strong>1</strong> of these messages were sent after the release, and are not delivered." in page) is fails
    assert ("Released does not mean delivered: see the current states." in page) is (is_open and not fails)
    assert ('id="progress" class="card card-wary"' in page) is fails


def test_the_first_figure_of_a_done_bulk_action_leaves_out_skipped_messages() -> None:
    parked(dlq())
    operation = _asked()
    client = person("ben", *MAY)
    assert _head(client.get(f"{DESK}{operation.pk}/change/").content.decode()) == "Running 0 of 1"
    BulkAction.objects.filter(pk=operation.pk).update(
        state="done", finished_at=database_now(), asked=3, done=2, letters_skipped=1
    )
    assert _head(client.get(f"{DESK}{operation.pk}/change/").content.decode()) == "Discarded 2 of 3"


def test_messages_parked_again_are_not_said_to_be_late() -> None:
    operation, (first, second) = _released(2)
    said, client = "matched the filter only after the start", person("ben", *MAY)
    ended = {"state": "parked", "reason": "attempts_spent", "finished_at": database_now(), "lane": None}
    Letter.objects.filter(pk__in=[first.pk, second.pk]).update(**ended)
    page = client.get(f"{DESK}{operation.pk}/progress").content.decode()
    assert (_facts(page)["Parked again"], said in page) == ("2", False)
    parked(dlq("other"))
    assert f"1 message {said}, and is not changed" in client.get(f"{DESK}{operation.pk}/progress").content.decode()


@pytest.mark.parametrize(("own", "others", "told"), [(4, 0, []), (1, 4, ["3+ messages"])])
def test_late_messages_are_counted_among_a_bounded_number(
    own: int, others: int, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(late_letters, "MAX_LATE_COUNT", 3)
    operation, letters = _released(own)
    ended = {"state": "parked", "reason": "attempts_spent", "finished_at": database_now(), "lane": None}
    Letter.objects.filter(pk__in=[letter.pk for letter in letters]).update(**ended)
    other = dlq("other")
    for _ in range(others):
        parked(other)
    page = person("ben", *MAY).get(f"{DESK}{operation.pk}/progress").content.decode()
    assert re.findall(r">(\S+ messages?) matched the filter only after the start, and are not changed", page) == told


def test_open_breaker_of_released_messages_is_named() -> None:
    operation, (letter,) = _released(1)
    client = person("ben", *MAY)
    assert "circuit breaker" not in client.get(f"{DESK}{operation.pk}/change/").content.decode()
    letter.refresh_from_db()
    Breaker.objects.filter(target=letter.target).update(
        state="open", retry_at=database_now() + HOUR, why="it <b>answers</b> 503"
    )
    page = client.get(f"{DESK}{operation.pk}/change/").content.decode()
    assert " is open (it &lt;b&gt;answers&lt;/b&gt; 503): messages wait until a canary succeeds, sent at " in page


def test_skipped_messages_are_explained() -> None:
    source = dlq()
    letters = [parked(source) for _ in range(3)]
    fifo = Target.objects.create(arn="arn:aws:sqs:eu-west-1:0:x.fifo", url="http://127.0.0.1:9", region="x", fifo=True)
    operation = _asked(BulkActionKind.RELEASE, target=fifo.pk)
    run_bulk_actions.run_bulk_action(operation.pk, seconds=9)
    page = person("ben", *MAY).get(f"{DESK}{operation.pk}/change/").content.decode()
    assert (_facts(page)["Skipped"], _facts(page)["Target"]) == ("3", "x.fifo")
    assert ">Still parked</a>" in page
    assert f"for example {letters[0].message_id}" in page


def test_start_is_the_time_of_the_confirmation() -> None:
    parked(dlq())
    before, opened = database_now(), database_now() - HOUR
    bulk_actions.create(uuid4(), BulkActionKind.NOTE, MessageFilter(), {}, by="ann", reason="why", opened=opened)
    operation, client = BulkAction.objects.get(), person("ben", *MAY)
    assert (operation.asked_at, operation.started_at >= before) == (opened, True)
    at = f"{operation.started_at:%Y-%m-%d %H:%M:%S}"
    page = client.get(f"{DESK}{operation.pk}/change/").content.decode()
    assert (f"started at {at} UTC" in page, f'"Started (UTC)">{at}<' in client.get(DESK).content.decode()) == (
        True, True,
    )  # fmt: skip


def test_messages_changed_meanwhile_are_counted() -> None:
    source = dlq()
    for _ in range(3):
        parked(source)
    operation = _asked()
    Letter.objects.update(finished_at=database_now() + HOUR)
    run_bulk_actions.run_bulk_action(operation.pk, seconds=9)
    assert _facts(person("ben", *MAY).get(f"{DESK}{operation.pk}/change/").content.decode())[
        "No longer matching"
    ] == "3"  # fmt: skip
    listed = person("zoe", *MAY).get(DESK).content.decode()
    cells = re.findall(r'<td data-label="(Done|Skipped|No longer matching|Messages)">([^<]*)<', listed)
    assert cells == [("Done", "0"), ("Skipped", "0"), ("No longer matching", "3"), ("Messages", "3")]


def test_missing_worker_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted from when it was asked for: its page may have been open for long before."""
    parked(dlq())
    operation, ben = _asked(), person("ben", *MAY)
    BulkAction.objects.update(asked_at=database_now() - HOUR)
    said = "No worker has started the bulk action yet."
    monkeypatch.setattr(bulk_action_pages, "_UNUSUAL", HOUR / 2)
    assert said not in ben.get(f"{DESK}{operation.pk}/change/").content.decode()
    monkeypatch.setattr(bulk_action_pages, "_UNUSUAL", -HOUR)
    assert said in ben.get(f"{DESK}{operation.pk}/change/").content.decode()


def test_bulk_action_and_abort_are_recorded() -> None:
    parked(dlq())
    token, criteria = uuid4(), MessageFilter(states=("parked",), text="secret")
    for _ in range(2):
        bulk_actions.create(token, BulkActionKind.ASSIGN, criteria, {"to": "zoe"}, by="ann", reason="hers")
    operation = BulkAction.objects.get()
    assert [bulk_actions.abort(operation.pk, by="ben", why="not hers") for _ in range(2)] == [True, False]
    told = (
        AuditEntry.objects.filter(letter=None).order_by("pk").values_list("act", "operation", "by", "reason", "after")
    )
    asked = {
        "filter": {"states": ["parked"], "text": "(a text in their bodies)"},
        "letters": operation.asked,
        "to": "zoe",
    }
    ended = {"letters": operation.asked, "done": 0, "letters_skipped": 0}
    assert list(told) == [
        ("assigned", operation.pk, "ann", "hers", asked),
        ("aborted", operation.pk, "ben", "not hers", ended),
    ]
    page = person("cleo", *MAY, "view_auditentry").get("/admin/reprocessing/auditentry/").content.decode()
    assert page.count(f'bulk action <a href="/admin/reprocessing/bulkaction/{operation.pk}/change/">') == 2


@pytest.mark.soak
def test_abort_takes_a_reason_and_second_abort_is_told() -> None:
    parked(dlq())
    operation = _asked()
    ann, ben = person("ann", *MAY), person("ben", *MAY)
    abort = f"{DESK}{operation.pk}/abort"
    assert "This field is required." in post(ann, abort, reason=" ")
    assert messages(post(ann, abort, reason="wrong dlq")) == [
        "Aborted. Messages that were changed already stay changed. All others stay as they are."
    ]
    page = post(ben, abort, reason="me, too")
    assert messages(page) == ["Nothing was changed: ann aborted it before you (wrong dlq)."]
    assert "ann aborted it: wrong dlq" in page
    operation.refresh_from_db()
    assert (operation.state, operation.aborted_by, Letter.objects.get().state) == ("aborted", "ann", "parked")


def test_finished_bulk_action_is_not_aborted() -> None:
    parked(dlq())
    operation = _asked()
    run_bulk_actions.run_bulk_action(operation.pk, seconds=9)
    page = post(person("ben", *MAY), f"{DESK}{operation.pk}/abort", reason="too late")
    assert messages(page) == ["Nothing was changed: it is done already."]


def test_abort_takes_the_permission_of_the_action() -> None:
    parked(dlq())
    operation = _asked()
    client = person("ben", *LOOKS, "view_bulkaction", "release_parkedletter")
    page = client.get(f"{DESK}{operation.pk}/change/").content.decode()
    assert "You may not abort the bulk action: it needs the permission to discard parked messages." in page
    client.get("/admin/password_change/")
    given = {"csrfmiddlewaretoken": client.cookies["csrftoken"].value, "reason": "no"}
    assert client.post(f"{DESK}{operation.pk}/abort", given).status_code == 403


def test_list_pages_have_bounded_queries(
    monkeypatch: pytest.MonkeyPatch, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    monkeypatch.setattr(bulk_action_pages, "SHOWN", 2)
    asked = [_asked(BulkActionKind.NOTE).pk for _ in range(5)]
    client, shown, query = person("ben", *MAY), [], ""
    for _ in range(3):
        with django_assert_max_num_queries(8):
            page = client.get(DESK + query).content.decode()
        shown += [int(one) for one in re.findall(rf'{DESK}(\d+)/change/">Note', page)]
        query = "".join(re.findall(r'href="(\?after=\d+)"', page))
    assert (shown, query) == (asked[::-1], "")


def test_body_text_takes_the_permission_to_see_payloads() -> None:
    parked(dlq(), body=b"4111-canary")
    bulk_actions.create(uuid4(), BulkActionKind.NOTE, MessageFilter(text="4111-canary"), {}, by="ann", reason="why")
    address = f"{DESK}{BulkAction.objects.get().pk}/change/"
    page = person("ben", *MAY).get(address).content.decode()
    assert ("4111-canary" in page, "whose body contains a text" in page) == (False, True)
    assert (
        "whose body contains &quot;4111-canary&quot;"
        in person("cid", *MAY, "view_payload").get(address).content.decode()
    )


def test_body_text_of_a_dlq_with_masks_takes_the_permission_to_reveal_masked_values() -> None:
    source = dlq()
    parked(source, body=b'{"card": "4111-canary"}')
    DeadLetterQueue.objects.update(masked_fields=["card"])
    criteria = MessageFilter(text="4111-canary", dlq=source.dlq_id)
    bulk_actions.create(uuid4(), BulkActionKind.NOTE, criteria, {}, by="ann", reason="why")
    address = f"{DESK}{BulkAction.objects.get().pk}/change/"
    assert "4111-canary" not in person("ben", *MAY, "view_payload").get(address).content.decode()
    sees = person("cid", *MAY, "view_payload", "reveal_payload")
    assert "whose body contains &quot;4111-canary&quot;" in sees.get(address).content.decode()


def test_open_page_loses_its_abort_form() -> None:
    parked(dlq())
    operation = _asked()
    client = person("ben", *MAY)
    gone = '<div id="abort" hx-swap-oob="true"></div>'
    assert gone not in client.get(f"{DESK}{operation.pk}/progress").content.decode()
    run_bulk_actions.run_bulk_action(operation.pk, seconds=9)
    assert gone in client.get(f"{DESK}{operation.pk}/progress").content.decode()
    assert 'id="abort"' not in client.get(f"{DESK}{operation.pk}/change/").content.decode()
