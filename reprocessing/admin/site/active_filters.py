"""The active filters of a list: bring them in the URL into one spelling, and describe them in words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.contrib.admin.views.main import ChangeList
from django.db.models import BooleanField, Field, ForeignKey
from django.db.models.options import Options
from django.http import QueryDict

from reprocessing.admin.site import labels
from reprocessing.store.rights.visible_dlqs import VisibleDlqs

_IDS: Final = re.compile("[0-9]{1,18}(?:,[0-9]{1,18}){0,49}")
_YES: Final = {"0": "no", "1": "yes", "False": "no", "True": "yes"}


@dataclass(frozen=True, slots=True)
class ActiveFilter:
    """A filter in the URL of a list: its label, its value in words, and the URL query without the filter."""

    label: str
    value: str
    without: str


def canonical(query: QueryDict, filters: Iterable[Any], options: Options[Any]) -> QueryDict:
    """Return the URL query with each filter named as in Django's sidebar: `state` becomes `state__exact`.

    With another name, Django filters the list too, but the sidebar shows "All". `filters`: names of the model's fields
    by which the list can be filtered.
    """
    found = query.copy()
    for name in filters:
        field = options.get_field(name[0] if isinstance(name, tuple) else name)
        shown, spellings = _names(field) if isinstance(field, Field) else ("", ())
        given = next((spelling for spelling in spellings if spelling in found), None)
        if given is not None and shown not in found:
            found.setlist(shown, found.pop(given))
    return found


def filters_of_list(changelist: ChangeList) -> list[ActiveFilter]:
    """Return the active filters of a list of this service, or of a list of Django itself, such as the list of users.

    For a list of Django itself, the words are taken from the selected entries of its sidebar.
    """
    if hasattr(changelist, "active_filters"):
        found: list[ActiveFilter] = changelist.active_filters
        return found
    return [
        ActiveFilter(labels.column(str(sidebar.title)), str(choice["display"]), str(everything["query_string"]))
        for sidebar in changelist.filter_specs
        for everything, *others in [sidebar.choices(changelist)]
        for choice in others
        if choice["selected"]
    ]


def words(field: Field[Any, Any], how: str, value: str, seen: VisibleDlqs) -> str:
    """Return the value of a filter in words, such as the name of the DLQ with this id.

    `how`: the filter's Django lookup, such as "isnull". Names of rows that the person does not see are left out.
    """
    if how == "isnull":
        return "none" if _YES.get(value) == "yes" else "any"
    if isinstance(field, ForeignKey):
        model: Any = field.related_model
        ids = value.split(",") if _IDS.fullmatch(value) else []
        every = model._default_manager  # noqa: SLF001  Django's public name for it
        names = [str(row) for row in seen.rows(every.filter(pk__in=ids))]
        return ", ".join(names) or value
    if isinstance(field, BooleanField):
        return _YES.get(value, value)
    return ", ".join(labels.state(_choices(field).get(part, part)) for part in value.split(","))


def _names(field: Field[Any, Any]) -> tuple[str, tuple[str, ...]]:
    if isinstance(field, ForeignKey):
        spellings = ("", "__exact", "__id", "__pk", "__pk__exact")
        return f"{field.name}__{field.target_field.name}__exact", tuple(f"{field.name}{end}" for end in spellings)
    if field.choices or isinstance(field, BooleanField):
        return f"{field.name}__exact", (field.name,)
    return "", ()


def _choices(field: Field[Any, Any]) -> Mapping[str, str]:
    return {str(value): str(name) for value, name in field.flatchoices} if field.name != "state" else {}
