from __future__ import annotations

import pytest
from django.contrib.messages.storage.base import Message
from django.template import engines
from django.utils.html import format_html

from reprocessing.admin.runs.plan_run import RunForm
from reprocessing.admin.site.fields import utc_datetime
from reprocessing.models import DeadLetterQueue, Run
from reprocessing.store.rights.visible_dlqs import EVERY_DLQ
from tests.reprocessing.admin.parking_lot.parked_messages import DECIDES, dlq, parked, person, post

pytestmark = pytest.mark.django_db
TURNED = "a\u202egnp\u2066\x1b[31m"
SHOWN = "a&lt;U+202E&gt;gnp&lt;U+2066&gt;&lt;U+001B&gt;[31m"
LOT = "/admin/reprocessing/parkedletter/"
DLQ = "view_deadletterqueue"


@pytest.mark.parametrize("name", ["assigned", "q", "text", "key"])
def test_the_sentence_of_a_filter_shows_what_turns_others_round(name: str) -> None:
    parked(dlq())
    page = person("ann", *DECIDES, "view_payload").get(LOT, {name: TURNED}).content.decode()
    said = page.split('<p class="lot-sum">')[1].split("</p>")[0]
    assert SHOWN in said
    assert "\u202e" not in said


def test_a_discard_of_all_that_match_is_asked_for_in_words_that_cannot_deceive() -> None:
    ann = person("ann", *DECIDES)
    letter = parked(dlq(), key=TURNED)
    page = post(ann, f"{LOT}discard", query=f"key={TURNED}&state=parked", scope="all")
    assert letter.message_id in page
    said = page.split("<article")[1].split("</article>")[0]
    assert SHOWN in said
    assert "\u202e" not in said


def test_what_an_error_of_a_form_quotes_cannot_deceive() -> None:
    form = RunForm(EVERY_DLQ, {})
    form.add_error("name", f"There is no {TURNED}.")
    form.add_error(None, f"Nor {TURNED}.")
    assert f"There is no {SHOWN}." in str(form["name"].errors)
    assert f"Nor {SHOWN}." in str(form.non_field_errors())


def test_a_message_keeps_the_name_it_begins_with_and_the_markup_that_is_its_own() -> None:
    said = engines["django"].from_string("{{ message|visible }}")
    assert said.render({"message": Message(20, f"orders {TURNED} <b>")}) == f"orders {SHOWN} &lt;b&gt;"
    assert said.render({"message": Message(20, format_html("<b>{}</b>", TURNED))}) == f"<b>{SHOWN}</b>"
    ann = person("ann", "view_run", "operate_run")
    run = Run.objects.create(name="seven", dlq=DeadLetterQueue.objects.get(pk=dlq().dlq_id))
    form = ann.get(f"/admin/reprocessing/run/{run.pk}/abort/now").context["form"]
    page = post(ann, f"/admin/reprocessing/run/{run.pk}/abort/now", seen=form["seen"].value(), reason="no")
    assert '<li class="success">seven is aborted.' in page


@pytest.mark.parametrize("text", ["9999-12-31 23:59:59-01:00", "0001-01-01 00:00+01:00"])
def test_a_moment_that_utc_has_no_day_for_is_refused_in_words(text: str) -> None:
    source = dlq()
    ann = person("ann", "view_run", "operate_run")
    for name in ("sent_after", "sent_before"):
        given = {"dlq": source.dlq_id, "name": "one", "reason": "mended", name: text}
        assert "Not a valid date and time" in post(ann, "/admin/reprocessing/run/add/", **given)
    assert Run.objects.count() == 0
    assert str(utc_datetime("when").clean("2026-03-01 08:00+01:00")) == "2026-03-01 07:00:00+00:00"
