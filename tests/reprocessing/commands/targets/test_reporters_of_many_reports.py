"""The list of reporters does not read all their reports."""

from __future__ import annotations

from typing import Final, LiteralString

import pytest
from django.db import connection

from reprocessing.models import Report, Reporter
from tests.reprocessing.commands.conftest import AskJson
from tests.reprocessing.store.explained import explained
from tests.reprocessing.store.seeded_letters import nothing_is_vacuumed, with_statistics

REPORTS: Final = 5_000
MOST: Final = 30

_REPORTS: Final[LiteralString] = """
INSERT INTO redrive_report (reporter_id, message_id, verdict, type, message, fingerprint, happened_at, received_at,
                            digest)
SELECT %s, 'm-' || n, 'delivered', '', '', '', redrive_now(), redrive_now() - n * interval '1 second',
       sha256(int8send(n))
  FROM generate_series(1, %s::bigint) n
"""


@pytest.mark.soak
@pytest.mark.django_db(transaction=True)
def test_the_last_report_is_found_without_the_others(ask_json: AskJson) -> None:
    with nothing_is_vacuumed():
        names = ("one", "two")
        often, _ = (Reporter.objects.create(name=name, token_hash=name.encode(), added_by="ann") for name in names)
        with connection.cursor() as cursor:
            cursor.execute(_REPORTS, [often.pk, REPORTS])
        with_statistics()
        with explained() as found:
            one, two = ask_json("list_reporters")["reporters"]
    last = Report.objects.latest("received_at").received_at
    assert (one["last_heard_at"], two["last_heard_at"]) == (last.isoformat().replace("+00:00", "Z"), None)
    assert {query.text: query.buffers for query in found if query.buffers > MOST} == {}
