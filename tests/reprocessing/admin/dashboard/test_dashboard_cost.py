"""What the dashboard must not do for each of its rows, or for nothing."""

from __future__ import annotations

import pytest
from django.contrib.admin import AdminSite
from django.urls import reverse as look_up

from reprocessing.admin.dashboard import addresses
from reprocessing.admin.dashboard.addresses import Addresses
from reprocessing.domain.lifecycle import LetterState
from reprocessing.store.dlqs import dlq_status
from reprocessing.store.ordering.lanes import database_now
from tests.reprocessing.admin.parking_lot.parked_messages import HOUR, LOOKS, dlq, person
from tests.reprocessing.commands.stock import add_letter

pytestmark = pytest.mark.django_db


def test_django_s_list_of_pages_is_made_where_it_is_shown_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    build = AdminSite.get_app_list

    def counted(*given: object) -> object:
        made.append(given)
        return build(*given)  # type: ignore[arg-type]  # whatever is given

    monkeypatch.setattr(AdminSite, "get_app_list", counted)
    ann = person("ann", *LOOKS, "view_deadletterqueue")
    assert ann.get("/admin/board").status_code == 200
    assert made == []
    assert (
        '<li><a href="/admin/reprocessing/parkedletter/">'
        in ann.get("/admin/").content.decode().partition("All pages")[2]
    )
    assert len(made) == 1


def test_a_page_s_address_is_looked_up_once_for_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def counted(name: str, **given: object) -> str:
        asked.append(name)
        return look_up(name, **given)  # type: ignore[arg-type]  # whatever is given

    monkeypatch.setattr(addresses, "reverse", counted)
    of = Addresses()
    for key in (1, 20, 305):
        assert of.of("board_dlq", key) == look_up("admin:board_dlq", args=[key])
        assert of.of("reprocessing_run_change", key) == look_up("admin:reprocessing_run_change", args=[key])
        assert of.parked(key) == f"/admin/reprocessing/parkedletter/?dlq__id__exact={key}"
        assert of.plan(key) == f"/admin/reprocessing/run/add/?dlq={key}"
    assert len(asked) == 4


def test_the_oldest_message_of_a_dlq_is_the_oldest_of_all_its_states() -> None:
    shop, mails = dlq("shop"), dlq("mails")
    now = database_now()
    add_letter(shop, LetterState.WAITING, first_sent_at=now - 3 * HOUR)
    add_letter(shop, LetterState.PARKED, first_sent_at=now - 2 * HOUR)
    add_letter(shop, LetterState.DELIVERED, first_sent_at=now - 9 * HOUR)
    add_letter(mails, LetterState.PARKED, first_sent_at=now - 4 * HOUR)
    add_letter(dlq("done"), LetterState.DELIVERED, first_sent_at=now - 9 * HOUR)
    assert dlq_status.oldest_of_dlqs() == {shop.dlq_id: now - 3 * HOUR, mails.dlq_id: now - 4 * HOUR}
