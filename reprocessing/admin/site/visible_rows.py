"""Select the rows that the person of a request sees. All pages of the admin read their rows through this module."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from django.contrib.admin import ModelAdmin, RelatedFieldListFilter
from django.core.exceptions import PermissionDenied
from django.db.models import Manager, QuerySet
from django.db.models.fields.related import RelatedField
from django.http import Http404, HttpRequest
from django.utils.html import format_html

from reprocessing.admin.site import labels
from reprocessing.models import Breaker, DeadLetterQueue, Rule, Target
from reprocessing.store.rights.visible_dlqs import ALL_DLQS, Row, VisibleDlqs, visible_dlqs

_CACHE_NAME: Final = "_redrive_visible_dlqs"  # attribute of the user that keeps the DLQs for a request
_ID_DIGITS: Final = 19  # digits of PostgreSQL's largest bigint; a number with fewer digits always fits
#: In a text, replaces the name of a DLQ, rule or target that a person does not see.
HIDDEN: Final = "(of another team)"


def of_user(user: Any) -> VisibleDlqs:  # noqa: ANN401  any of Django's users
    """Return which DLQs a person sees. The answer is read from PostgreSQL only once for each request."""
    if not hasattr(user, _CACHE_NAME):
        setattr(user, _CACHE_NAME, visible_dlqs(user))
    found: VisibleDlqs = getattr(user, _CACHE_NAME)
    return found


def of(request: HttpRequest) -> VisibleDlqs:
    """Return which DLQs the person who sent this request sees."""
    return of_user(request.user)


def rows(request: HttpRequest, every: Manager[Row] | QuerySet[Row]) -> QuerySet[Row]:
    """Return the rows of `every` that the person who sent this request sees."""
    return of(request).rows(every.all())


def row_or_404(request: HttpRequest, every: Manager[Row] | QuerySet[Row], key: int | str) -> Row:
    """Return the row with this id.

    Raises:
        Http404: there is no such row, this person does not see it, or `key` is not an id.
    """
    row = rows(request, every).filter(pk=key).first() if isinstance(key, int) or is_id(key) else None
    if row is None:
        raise Http404
    return row


def changeable_or_403(request: HttpRequest, every: Manager[Row] | QuerySet[Row], key: int) -> Row:
    """Return the target, circuit breaker or rule with this id, if this person may change it.

    Raises:
        Http404: this person does not see the row.
        PermissionDenied: a DLQ that this person does not see uses the row.
    """
    row = row_or_404(request, every, key)
    if not of(request).changeable(every.filter(pk=row.pk)).exists():
        raise PermissionDenied
    return row


def is_shared(request: HttpRequest, row: Breaker | Rule | Target) -> bool:
    """Return whether a DLQ that this person does not see uses the row. The person may then not change the row."""
    return not of(request).changeable(type(row)._default_manager.filter(pk=row.pk)).exists()  # noqa: SLF001  see above


def require_all(request: HttpRequest) -> None:
    """Check that the person sees all DLQs.

    Raises:
        PermissionDenied: the permission `view_all_dlqs` is missing.
    """
    if not request.user.has_perm(ALL_DLQS):
        raise PermissionDenied


def is_id(text: str) -> bool:
    """Return whether a text is a number that can be the id of a row."""
    return text.isascii() and text.isdecimal() and len(text) < _ID_DIGITS


def without_hidden_names(request: HttpRequest, text: str) -> str:
    """Return the text. "(of another team)" replaces names of DLQs, rules and targets that this person may not see."""
    if of(request).are_all or not text:
        return text
    names = sorted({name for name in _hidden_names(request) if name and name in text}, key=len, reverse=True)
    if not names:
        return text
    found = re.sub(rf"(?<![\w-])(?:{'|'.join(map(re.escape, names))})(?![\w-])", HIDDEN, text)
    return re.sub(rf"{re.escape(HIDDEN)}(?:,? {re.escape(HIDDEN)})+", HIDDEN, found)


def _hidden_names(request: HttpRequest) -> Iterator[str]:
    for model, columns in ((DeadLetterQueue, ("arn", "url", "name")), (Rule, ("name",)), (Target, ("arn", "url"))):
        every = model._default_manager.all()  # noqa: SLF001  Django's public name for it
        for row in every.exclude(pk__in=rows(request, every).values("pk")):
            yield str(row)
            yield from (getattr(row, column) for column in columns)


class VisibleRelatedFilter(RelatedFieldListFilter):
    """A filter of a list by a related object, such as a DLQ. It offers only objects that this person sees."""

    def __init__(self, field: RelatedField[Any, Any], *rest: Any, **options: Any) -> None:  # noqa: ANN401  Django's own
        super().__init__(field, *rest, **options)
        self.empty_value_display = format_html("{}", labels.without(field))  # instead of Django's "-"

    def field_choices(
        self, field: RelatedField[Any, Any], request: HttpRequest, model_admin: ModelAdmin[Any]
    ) -> list[tuple[Any, Any]]:
        """Return the ids and names of the objects that the filter offers, in the order of the objects' own list."""
        model = field.related_model
        ordering = self.field_admin_ordering(field, request, model_admin)
        every = rows(request, model._default_manager.order_by(*ordering))  # noqa: SLF001  Django's public name for it
        return [(row.pk, str(row)) for row in every]
