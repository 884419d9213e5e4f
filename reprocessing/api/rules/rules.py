"""List rules, show a rule, and enable or disable a rule."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus
from typing import Final

from django.http import HttpRequest
from ninja import Router
from pydantic import Field

from reprocessing.api.approvals.approval_answers import ApprovalNeededAnswer
from reprocessing.api.site import paging
from reprocessing.api.site.caller import caller_of
from reprocessing.api.site.document import changes, reads
from reprocessing.api.site.fields import Answer, Change, ChangeAnswer
from reprocessing.api.site.guard import acts
from reprocessing.api.site.paging import After, Limit, Next
from reprocessing.api.site.problems import Problem, conflict
from reprocessing.domain.api.scopes import Scope
from reprocessing.domain.configuration.keys import Kind
from reprocessing.models import Rule
from reprocessing.pipeline.routing import route
from reprocessing.store.configuration import managed
from reprocessing.store.routing import rule_changes

router: Final = Router()
_TAG: Final = "Rules"


class RuleView(Answer):
    """A rule. Rules are tried in the order of `position`; the first rule whose conditions all match decides.

    `errors`: number of messages on which the rule failed. `last_error`: the last of these errors.
    """

    name: str
    position: int
    enabled: bool
    dlq: str | None = Field(description="name of the DLQ whose messages the rule applies to; null: all DLQs")
    conditions: list[str]
    action: str
    target: str | None = Field(description="ARN of the target to which the rule sends; null: the DLQ's own target")
    rate_class: str | None = Field(description="name of the rate class that limits the messages; null: none")
    delay: float | None = Field(description="of the action delay: seconds that a message waits")
    valid_from: datetime | None
    valid_until: datetime | None
    messages_matched: int
    last_match: datetime | None
    errors: int
    last_error: str | None


class RulePage(Answer):
    """A page of rules, by name."""

    items: list[RuleView]
    next: Next


class RuleAnswer(ChangeAnswer):
    """The result of the request to enable or disable a rule, or of its dry run."""

    rule: RuleView


_ANSWERS: Final = {200: RuleAnswer, 202: ApprovalNeededAnswer}


@reads(router, "/rules", Scope.RULES_READ, RulePage, tag=_TAG)
def list_rules(request: HttpRequest, limit: Limit = paging.DEFAULT, after: After = "") -> RulePage:
    """List rules.

    Lists, by name, the rules of the DLQs that the token sees, and the rules that apply to all DLQs.
    """
    rows = caller_of(request).rows(Rule.objects.select_related("dlq", "target", "rate_class"))
    found, following = paging.page_by_name(rows, after=after, limit=limit, name=lambda rule: rule.name)
    return RulePage(items=[_view(rule) for rule in found], next=following)


@reads(router, "/rules/{slug:rule}", Scope.RULES_READ, RuleView, tag=_TAG)
def get_rule(request: HttpRequest, rule: str) -> RuleView:
    """Show one rule."""
    return _view(_rule(request, rule))


@changes(router, "/rules/{slug:rule}/enable", Scope.RULES_SWITCH, _ANSWERS, tag=_TAG)
def enable_rule(request: HttpRequest, rule: str, change: Change) -> RuleAnswer:
    """Enable a rule.

    Before a message is sent, enabled rules are tried by position. The first rule that matches the message decides.
    """
    return _switch(request, rule, change, enabled=True)


@changes(router, "/rules/{slug:rule}/disable", Scope.RULES_SWITCH, _ANSWERS, tag=_TAG)
def disable_rule(request: HttpRequest, rule: str, change: Change) -> RuleAnswer:
    """Disable a rule.

    The other rules decide about messages that this rule held or delayed. Messages that it quarantined stay parked.
    """
    return _switch(request, rule, change, enabled=False)


def _switch(request: HttpRequest, name: str, change: Change, *, enabled: bool) -> RuleAnswer:
    row = _rule(request, name)
    _require_changeable(request, row)
    did = "enabled" if enabled else "disabled"
    confirmed = acts(request, confirm=change.confirm)
    if row.enabled == enabled:
        says = [f"{name} is {did} already."]
        return RuleAnswer(dry_run=not confirmed, changed=False, says=says, rule=_view(row))
    if not confirmed:
        if enabled:
            rule_changes.check(row)
        return RuleAnswer(dry_run=True, changed=False, says=[f"{name} would be {did}."], rule=_view(row))
    by = caller_of(request).by
    changed = rule_changes.set_enabled(row.pk, enabled=enabled, by=by, reason=change.reason)
    woken = route.wake_stopped(route.RuleBook.load())
    says = [f"{name} is {did}. {woken:,} messages that rules held or delayed are evaluated again."]
    return RuleAnswer(dry_run=False, changed=changed, says=says, rule=_view(_rule(request, name)))


def _rule(request: HttpRequest, name: str) -> Rule:
    return caller_of(request).row(Rule.objects.select_related("dlq", "target", "rate_class"), "rule", name=name)


def _require_changeable(request: HttpRequest, row: Rule) -> None:
    """Check that the request may change the rule.

    Raises:
        Problem: the rule also applies to DLQs that the token does not see, or a configuration file manages the rule.
    """
    if not caller_of(request).seen.changeable(Rule.objects.filter(pk=row.pk)).exists():
        why = f"{row.name} also decides about messages of DLQs that this token does not see. Use a token that sees all."
        raise Problem(HTTPStatus.FORBIDDEN, f"Nothing was done. {why}")
    mark = managed.find_mark(Kind.RULE, row.name)
    if mark is not None and mark.unlocked_at is None:
        raise conflict(f"A configuration file manages {row.name}. Change it there, or unlock it in the admin.")


def _view(row: Rule) -> RuleView:
    return RuleView(
        name=row.name, position=row.position, enabled=row.enabled, dlq=row.dlq.name if row.dlq else None,
        conditions=[str(text) for text in row.conditions], action=row.action,
        target=row.target.arn if row.target else None, rate_class=row.rate_class.name if row.rate_class else None,
        delay=row.delay, valid_from=row.valid_from, valid_until=row.valid_until, messages_matched=row.match_count,
        last_match=row.last_hit_at, errors=row.error_count, last_error=row.last_error or None,
    )  # fmt: skip
