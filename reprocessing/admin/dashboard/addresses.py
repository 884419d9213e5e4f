"""URLs of pages about DLQs, for the rows of the dashboard's table."""

from __future__ import annotations

from urllib.parse import urlencode

from django.urls import reverse


class Addresses:
    """URLs of the admin's pages. Django's `reverse` is slow for hundreds of rows, so each URL name is resolved once."""

    def __init__(self) -> None:
        self._patterns: dict[str, tuple[str, str]] = {}

    def of(self, page: str, key: int) -> str:
        """Return the URL of a page about one row. `page`: the name of the URL without "admin:". `key`: the row's id."""
        if page not in self._patterns:
            before, _, after = reverse(f"admin:{page}", args=[0]).rpartition("0")
            self._patterns[page] = (before, after)
        before, after = self._patterns[page]
        return f"{before}{key}{after}"

    def parked(self, dlq: int) -> str:
        """Return the URL of the parking lot with this DLQ's messages."""
        return self._listed("reprocessing_parkedletter_changelist", dlq__id__exact=dlq)

    def plan(self, dlq: int) -> str:
        """Return the URL of the page that plans a run of this DLQ."""
        return self._listed("reprocessing_run_add", dlq=dlq)

    def _listed(self, page: str, **query: int) -> str:
        if page not in self._patterns:
            self._patterns[page] = (reverse(f"admin:{page}"), "")
        return f"{self._patterns[page][0]}?{urlencode(query)}"
