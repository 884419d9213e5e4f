"""The filter by state in the list of messages. It shows states with the same names as all pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from django.contrib.admin import ChoicesFieldListFilter
from django.contrib.admin.views.main import ChangeList

from reprocessing.admin.site import labels
from reprocessing.domain.lifecycle import LetterState

STATE, PRESUMED = "state__exact", "presumed__exact"
_PRESUMED_VALUES: Final = {"0": False, "1": True}


def named_state(asked: dict[str, str]) -> str:
    """Return "delivered" or "presumed delivered" if the URL selects one of the two, else an empty text."""
    presumed = _PRESUMED_VALUES.get(asked.get(PRESUMED, ""))
    if presumed is None or asked.get(STATE) != LetterState.DELIVERED:
        return ""
    return labels.state(LetterState.DELIVERED, presumed)


class StateFilter(ChoicesFieldListFilter):
    """The filter by state. "Delivered" and "presumed delivered" are two choices."""

    def expected_parameters(self) -> list[str | None]:
        """Return the URL parameters of this filter."""
        return [*super().expected_parameters(), PRESUMED]

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        """Yield "All", then each state by its name."""
        state, presumed = (changelist.params.get(name) for name in (STATE, PRESUMED))
        yield {
            "selected": state is None and presumed is None,
            "query_string": changelist.get_query_string({STATE: None, PRESUMED: None}), "display": "All",
        }  # fmt: skip
        for kind in LetterState:
            for value in ("0", "1") if kind is LetterState.DELIVERED else (None,):
                yield {
                    "selected": (state or presumed) is not None and state in {kind, None} and presumed in {value, None},
                    "query_string": changelist.get_query_string({STATE: kind.value, PRESUMED: value}),
                    "display": labels.state(kind, value == "1"),
                }  # fmt: skip
