"""Every page that can be opened, found by its address."""

from __future__ import annotations

from collections.abc import Iterator

from django.test import Client

from reprocessing.store.rights import roles
from tests.reprocessing.admin.site import test_matrix
from tests.reprocessing.admin.site.sample_rows import rows_of_everything, schedules


def furnished() -> None:
    """Rows of everything that has a page, also of what is Django's and beat's."""
    rows_of_everything()
    schedules()
    roles.update_groups()


#: Of what kind a page is: every list, every row of a list, and what stands alone.
KINDS = ("lists", "rows", "others")
_BY_END = {"changelist": "lists", "change": "rows", "history": ""}  # all histories are one page of Django's


def addresses(kind: str = "") -> dict[str, str]:
    """An example of every address of ours that somebody may open, or of those of a kind, by its name."""
    found = {name: address for name, address in test_matrix._addresses() if test_matrix._expected(name)}
    kinds = {name: _BY_END.get(name.rpartition("_")[2], "others") for name in found}
    return {name: address for name, address in found.items() if kinds[name] == kind or not kind}


def pages(client: Client, kind: str = "") -> Iterator[tuple[str, str]]:
    """Each page that this person may open, by the name of its address."""
    for name, address in addresses(kind).items():
        answer = client.get(address)
        if answer.status_code == 200 and answer.headers["Content-Type"].startswith("text/html"):
            yield name, answer.content.decode()
