"""Every change of the rules in force raises the rulebook's version once, with an audit log entry."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reprocessing.domain.errors import InvalidRule
from reprocessing.models import AuditEntry, Letter, Rule, Rulebook
from reprocessing.store.ordering import lanes
from reprocessing.store.routing import rule_changes, rules
from tests.reprocessing.store.stock import Stock

pytestmark = pytest.mark.django_db

HOLD = {"action": "hold", "conditions": ["body:kind equals bad"], "enabled": True}
HOUR = timedelta(hours=1)


def _put(name: str = "bad", **fields: object) -> Rule:
    rule_changes.save_rule(name, {**HOLD, **fields}, by="ann", reason="a test")
    return Rule.objects.get(name=name)


def test_without_rules_the_version_is_zero_and_none_is_in_force() -> None:
    assert (rules.version(), rules.in_force().rules, rules.raise_version_if_due(lanes.database_now())) == (0, (), False)


def test_every_change_raises_the_version_and_is_in_the_audit_log() -> None:
    row = _put()
    _put(position=7)
    rule_changes.set_enabled(row.pk, enabled=False, by="bob", reason="wrong")
    rule_changes.set_enabled(row.pk, enabled=True, by="bob", reason="right")
    rule_changes.remove(row.pk, by="bob", reason="done")
    assert rules.version() == 5
    assert list(AuditEntry.objects.order_by("id").values_list("act", "by", "reason")) == [
        ("added", "ann", "a test"), ("changed", "ann", "a test"), ("changed", "bob", "wrong"),
        ("changed", "bob", "right"), ("changed", "bob", "done"),
    ]  # fmt: skip
    assert AuditEntry.objects.order_by("id")[1].before == {"rule": "bad", "position": 100}


def test_a_change_of_nothing_leaves_the_version() -> None:
    row = _put()
    _put()
    assert rule_changes.set_enabled(row.pk, enabled=True, by="ann", reason="a test") is False
    assert (rules.version(), AuditEntry.objects.count()) == (1, 1)


def test_a_change_that_fails_leaves_nothing() -> None:
    with pytest.raises(InvalidRule, match="is not a condition"):
        _put(conditions=["body:kind resembles bad"])
    assert (rules.version(), Rule.objects.count(), AuditEntry.objects.count()) == (0, 0, 0)


def test_enabled_rules_are_in_force_in_their_time_ordered_by_position() -> None:
    now = lanes.database_now()
    _put("second", position=2)
    _put("first", position=1)
    _put("off", enabled=False)
    _put("soon", valid_from=now + HOUR)
    _put("over", valid_until=now - HOUR)
    _put("now", position=3, valid_from=now - HOUR, valid_until=now + HOUR)
    assert [bound.rule.name for bound in rules.in_force().rules] == ["first", "second", "now"]


def test_the_version_rises_once_when_a_rule_begins_and_once_when_it_ends() -> None:
    now = lanes.database_now()
    _put(valid_from=now + HOUR, valid_until=now + 2 * HOUR)

    def book() -> tuple[int, object]:
        found = Rulebook.objects.get()
        return found.version, found.changes_at

    assert (rules.raise_version_if_due(now), book()) == (False, (1, now + HOUR))
    assert [rules.raise_version_if_due(now + HOUR), rules.raise_version_if_due(now + HOUR)] == [True, False]
    assert book() == (2, now + 2 * HOUR)
    assert (rules.raise_version_if_due(now + 3 * HOUR), book()) == (True, (3, None))


def test_a_disabled_rule_changes_no_version_when_it_begins_or_ends() -> None:
    _put(enabled=False, valid_until=lanes.database_now() + HOUR)
    assert Rulebook.objects.get().changes_at is None


def test_an_edit_clears_the_rule_s_errors() -> None:
    row = _put()
    Rule.objects.update(error_count=3, last_error="it was odd", match_count=9)
    _put(conditions=["body:kind equals worse"])
    row.refresh_from_db()
    assert (row.error_count, row.last_error, row.match_count) == (0, "", 9)


@pytest.mark.django_db(transaction=True)
def test_only_a_removed_rule_is_erased_and_its_letters_have_no_rule_then() -> None:
    stock, row = Stock(), _put()
    Letter.objects.update(rule=row)
    rule_changes.erase(row.pk)
    assert Rule.objects.count() == 1  # it still holds
    rule_changes.remove(row.pk, by="ann", reason="a test")
    rule_changes.erase(row.pk)
    letter = Letter.objects.select_related("rule").get(pk=stock.letter.pk)
    assert (Rule.objects.count(), letter.rule) == (0, None)


def test_two_workers_that_see_a_rule_begin_raise_the_version_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now = lanes.database_now()
    _put(valid_from=now + HOUR)
    lock = rules.lock

    def late() -> Rulebook:
        monkeypatch.setattr(rules, "lock", lock)
        assert rules.raise_version_if_due(now + HOUR) is True
        return lock()

    monkeypatch.setattr(rules, "lock", late)
    assert rules.raise_version_if_due(now + HOUR) is False
    assert rules.version() == 2
