from __future__ import annotations

import pytest

from reprocessing.admin.dlqs.dlq_form import DlqForm
from reprocessing.admin.dlqs.finding_links import with_links
from reprocessing.models import Rule
from reprocessing.store.routing import rule_changes
from tests.reprocessing.admin.parking_lot.parked_messages import dlq

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Set --window SECONDS.", "Set “Return window (s)” to SECONDS."),
        ("Wait, or set --outcome accepted.", "Wait, or set “Outcome” to accepted."),
        ("Set --concurrency 1.", "Set --concurrency 1."),
        ("Add --celery.", "Add “Consumers”."),
        ("Name another --source.", "Name another “Source queues”."),
        ("Leave out --celery.", "Leave out “Consumers”."),
        ("one worker with --concurrency 1", "one worker with --concurrency 1"),
        ("First: manage.py add_target arn:x", 'First: <a href="/admin/reprocessing/target/add/">add a target</a>'),
        ("manage.py add_reporter CONSUMER --target x", "manage.py add_reporter CONSUMER --target x"),
        ("Wait (redrive_status), then", 'Wait (<a href="/admin/">the dashboard</a>), then'),
        ("on redrive_status --json.", "on redrive_status --json."),
        ("of <b> --mode", "of &lt;b&gt; “Mode”"),
    ],
)  # fmt: skip
def test_options_become_labels_and_commands_become_links(said: str, told: str) -> None:
    assert with_links(said, DlqForm.base_fields) == told


def test_existing_rows_link_to_their_form() -> None:
    row = dlq("shop").dlq
    rule_changes.save_rule("bad", {"action": "hold", "conditions": []}, by="ann", reason="a test")
    sheet = f"/admin/reprocessing/deadletterqueue/{row.pk}/examine"
    assert with_links("Change that DLQ: manage.py add_dlq shop …", {}) == (
        f'Change that DLQ: <a href="{sheet}">change shop</a>'
    )
    assert with_links("It: manage.py add_dlq shop --to TARGET.", DlqForm.base_fields) == (
        f'It: <a href="{sheet}">change shop</a> “Target” TARGET.'
    )
    assert with_links("(manage.py add_rule bad --to QUEUE), or", {}) == (
        f'(<a href="/admin/reprocessing/rule/{Rule.objects.get().pk}/edit">change bad</a> --to QUEUE), or'
    )
