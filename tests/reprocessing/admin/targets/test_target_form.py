from __future__ import annotations

import pytest

from reprocessing.models import AuditEntry, Breaker, Target
from reprocessing.store.targets import targets
from tests.reprocessing.admin.parking_lot.parked_messages import person, post
from tests.reprocessing.admin.site.preview_steps import previewed, saved, sheet

pytestmark = pytest.mark.django_db
ADD = "/admin/reprocessing/target/add/"
CONFIGURES = ("view_target", "add_target", "change_target")
FUNCTION = "arn:aws:lambda:eu-west-1:111122223333:function:orders"


def _edit(row: Target) -> str:
    return f"/admin/reprocessing/target/{row.pk}/edit"


def _function() -> Target:
    targets.save_target(FUNCTION, {"kind": "lambda", "region": "eu-west-1", "rate": 10.0}, by="bob", reason="a test")
    return Target.objects.get(arn=FUNCTION)


def test_preview_is_saved_with_user_and_reason() -> None:
    ann = person("ann", *CONFIGURES)
    given = previewed(ann, ADD, target=FUNCTION, rate="5", breaker_threshold="9")
    assert not Target.objects.exists()
    assert "orders is added. Nothing is sent to it until" in post(ann, ADD, **given)
    row = Target.objects.get()
    assert (row.arn, row.kind, row.rate, Breaker.objects.get(target=row).threshold) == (FUNCTION, "lambda", 5.0, 9)
    assert list(AuditEntry.objects.values_list("act", "by", "reason")) == [("added", "ann", "a test")]


@pytest.mark.soak
def test_only_changed_fields_are_saved() -> None:
    row, ann = _function(), person("ann", *CONFIGURES)
    assert "Nothing would change" in post(ann, _edit(row), **sheet(ann, _edit(row)), do="look")
    page = saved(ann, _edit(row), rate="off", ramp_every="20")
    assert "orders is changed." in page
    review = AuditEntry.objects.latest("pk")
    assert (review.before, review.after) == ({"rate": 10.0, "ramp_every": 10.0}, {"rate": None, "ramp_every": 20.0})


def test_errors_prevent_saving() -> None:
    ann = person("ann", *CONFIGURES)
    page = saved(ann, ADD, target=FUNCTION, proof="absence")
    assert "nothing comes back from there" in page
    assert "Fix the errors below first." in page
    assert not Target.objects.exists()


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"target": "nowhere"}, "No target is named &quot;nowhere&quot;"),
        ({"target": "http://127.0.0.1:9/gone"}, "Messages may not be sent there"),
        ({"region": "here"}, "Not an AWS region"),
        ({"content_type": "json"}, "Not a content type"),
        ({"answers": "200=fine"}, "200=fine"),
        ({"burst": "0"}, "Enter a number from 1 to 1,000,000"),
    ],
)
def test_invalid_values_are_explained(given: dict[str, str], why: str) -> None:
    ann = person("ann", *CONFIGURES)
    assert why in post(ann, ADD, **sheet(ann, ADD) | {"target": FUNCTION, "do": "look", **given})


def test_second_editor_is_told_who_was_first() -> None:
    row, ann = _function(), person("ann", *CONFIGURES)
    mine = previewed(ann, _edit(row), rate="7")
    targets.save_target(FUNCTION, {"rate": 3.0}, by="bob", reason="first")
    page = post(ann, _edit(row), **mine)
    assert "Somebody else changed orders after you opened this page: bob (&quot;first&quot;)." in page
    row.refresh_from_db()
    assert row.rate == 3.0


def test_registered_target_is_not_added_again() -> None:
    _function()
    ann = person("ann", *CONFIGURES)
    page = post(ann, ADD, **sheet(ann, ADD) | {"target": FUNCTION, "do": "look"})
    assert "is registered already. Change it on its own page." in page
