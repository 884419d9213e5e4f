"""The values of the fields that a page shows and nobody can change there."""

from __future__ import annotations

from typing import Final

from django.contrib.admin.helpers import AdminReadonlyField

from reprocessing.domain.notifications.text import duration

#: Fields in seconds that are too long to be read as seconds.
_LONG: Final = frozenset({"retention"})
_DAY: Final = 86_400


def readonly_value(field: AdminReadonlyField) -> str:
    """Return the value as Django shows it, but 160 instead of 160.0, and a retention also in words, such as 14 days."""
    name = str(field.field["name"])
    value = getattr(field.form.instance, name, None)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if name in _LONG and isinstance(value, int) and value % _DAY == 0:
        return f"{value} ({duration(value)})"
    return str(field.contents())
