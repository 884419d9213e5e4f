"""Measure the admin's pages with a million letters: milliseconds and SQL statements per request.

Starts the embedded stack (PostgreSQL, Valkey, local SQS), and writes letters of twenty DLQs (`--dlqs`) into it: 60 %
delivered, 25 % captured or queued, 10 % parked, 5 % discarded or duplicates, in two hundred failure groups, with lanes,
attempts, copies in the DLQ, runs, audit log entries and reports. Django's test client then requests each page in this
process, without network or other requests, so the figures are those of the service and of PostgreSQL alone. SQL
statements are also counted with a thousand letters; with all letters, a page may need three more at most. Prints a
table, and exits with 1 if a page is slower than `LONGEST`, or if the dashboard exceeds its own limits. `--pages board`
measures the dashboard alone.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch
from urllib.parse import urlencode

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.crowd import DLQS, create_dlqs, move_to_newest_run, write  # found through the line above
from benchmarks.stand import set_up_django
from redrive_service.sandbox.stack import Stack

if TYPE_CHECKING:
    from django.test import Client

LONGEST: Final = 200.0  # milliseconds that 95 % of the requests must stay below
BOARD: Final = ("board", "board's figures")  # the dashboard, and what an open dashboard requests every 5 s
BOARD_LONGEST, BOARD_LARGEST = 150.0, 120 * 1024  # limits of the dashboard: milliseconds, and bytes
FEW: Final = 1_000  # letters of the first measurement
#: A list of more than 1,000 letters first asks, in two statements, whether the newest ones fill the page. A third
#: statement counts its letters, which a list of one page does not need.
MORE_STATEMENTS: Final = 3


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one page: milliseconds of a request (median, 95th percentile), SQL statements, and bytes."""

    name: str
    median: float
    p95: float
    statements: int
    size: int


def pages() -> Iterator[tuple[str, str]]:
    """Yield the name and the address of each measured page."""
    from django.apps import apps  # noqa: PLC0415  its settings are known by now
    from django.contrib import admin  # noqa: PLC0415  as above

    from reprocessing.models import DeadLetterQueue, FailureGroup, Letter, Run  # noqa: PLC0415  as above

    admin.autodiscover()  # the models are registered with the URLs, which nobody has needed yet
    home = "/admin/reprocessing"
    dlq, run = DeadLetterQueue.objects.earliest("id").pk, Run.objects.latest("id").pk
    group = FailureGroup.objects.earliest("id").pk
    yield "board", "/admin/"
    yield "board's figures", "/admin/board"
    yield "board, sorted and filtered", "/admin/board?sort=-rate&state=review&page=2"
    yield "board of a dlq", f"/admin/board/{dlq}"
    yield "letters", f"{home}/letter/"
    yield "letters of a dlq", f"{home}/letter/?dlq__id__exact={dlq}"
    for state in ("captured", "waiting", "sending", "awaiting", "delivered", "parked", "discarded", "duplicate"):
        yield f"letters that are {state}", f"{home}/letter/?state__exact={state}"
        yield f"letters of a dlq, {state}", f"{home}/letter/?state__exact={state}&dlq__id__exact={dlq}"
    yield "letters of a key", f"{home}/letter/?q=account-85"
    yield "letters of no key", f"{home}/letter/?q=nothing"
    for name, text in searches():
        yield f"search: {name}", f"/admin/search?{urlencode({'q': text, 'below': 10**9})}"
    lists = ("parkedletter", "failuregroup", "run", "lane", "attempt", "auditentry", "report", "parkingqueuemessage")
    for model in (*lists, "bulkaction"):
        if admin.site.is_registered(apps.get_model("reprocessing", model)):
            yield f"{model}s", f"{home}/{model}/"
    yield "a group", f"{home}/failuregroup/{group}/change/"
    yield "a run", f"{home}/run/{run}/change/"
    letter = Letter.objects.filter(state="parked").earliest("id").pk
    yield "a parked letter", f"{home}/parkedletter/{letter}/change/"
    yield "a letter", f"{home}/letter/{letter}/change/"
    yield "a letter of a filtered list", f"{home}/letter/{letter}/change/?list=state__exact%3Dparked"


def searches() -> Iterator[tuple[str, str]]:
    """Yield searches that use indexes. Their addresses have `below`, so that a single match is not opened."""
    from reprocessing.models import Letter  # noqa: PLC0415  its settings are known by now

    letter = Letter.objects.filter(state="parked").earliest("id")
    yield "id", f"dlq:{letter.dlq.name} {letter.message_id}"
    yield "redrive id", f"{letter.public_id} state:parked"
    yield "key", "key:account-85"
    yield "any value", "account-85"
    yield "field", "customer:account-85"
    yield "unique field", f"order:{letter.pk}"
    yield "two fields", f"customer:account-85 order:{letter.pk}"
    yield "prefix", "customer:account-85*"
    yield "nothing", "order:nothing"


def later(client: Client) -> Iterator[tuple[str, str]]:
    """Yield the name and the address of a late page (about the fiftieth) of a list."""
    for model in ("letter", "parkedletter", "attempt"):
        address = query = f"/admin/reprocessing/{model}/"
        for _ in range(50):
            answer = client.get(query)
            more = getattr(answer.context and answer.context.get("cl"), "more", "") or ""
            query = address + more if more else query
        yield f"{model}s, page 50", query


def gathered() -> Iterator[tuple[str, str]]:
    """Yield the name and the address of the page of a run that has nearly all letters."""
    home = f"/admin/reprocessing/run/{move_to_newest_run()}"
    yield "a run of nearly all letters", f"{home}/change/"
    yield "its figures", f"{home}/progress"


def measure(client: Client, name: str, address: str, times: int) -> Cost:
    """Request a page `times` times and return its cost."""
    from django.db import connection  # noqa: PLC0415  its settings are known by now
    from django.test.utils import CaptureQueriesContext  # noqa: PLC0415  as above

    from reprocessing.store import rows  # noqa: PLC0415  as above

    took, raw = [], 0
    run = rows._execute  # noqa: SLF001  Django does not count the set-based statements

    def counted(*args: Any) -> None:  # noqa: ANN401  passes every argument on
        nonlocal raw
        raw += 1
        run(*args)

    with CaptureQueriesContext(connection) as asked, patch.object(rows, "_execute", counted):
        answer = client.get(address)
    statements = len(asked) + raw
    if answer.status_code != 200:  # noqa: PLR2004  what a page answers
        sys.exit(f"{name}: {address} answers {answer.status_code}.")
    for _ in range(times):
        began = time.perf_counter()
        client.get(address)
        took.append((time.perf_counter() - began) * 1_000)
    cuts = statistics.quantiles(took, n=20)
    return Cost(name, statistics.median(took), cuts[-1], statements, len(answer.content))


def person() -> Client:
    """Return a client that is signed in as a user with every permission."""
    from django.contrib.auth.models import User  # noqa: PLC0415  its settings are known by now
    from django.test import Client  # noqa: PLC0415  as above
    from django.test.utils import setup_test_environment  # noqa: PLC0415  as above

    setup_test_environment(debug=False)  # responses then show their template context
    client = Client(SERVER_NAME="localhost")
    client.force_login(User.objects.create_superuser("root"))
    return client


def is_fast(cost: Cost) -> bool:
    """Return whether a page is within its limits."""
    if cost.name in BOARD:
        return cost.p95 <= BOARD_LONGEST and cost.size <= BOARD_LARGEST
    return cost.p95 <= LONGEST


def compare(letters: int, history: int, times: int, dlqs: int, only: str) -> bool:
    """Measure with few and with all letters; return whether pages are fast, and need equally many SQL statements.

    `history`: number of delivered letters beside `letters`. `times`: requests for each page. `only`: measure only pages
    whose names have this text.
    """
    from redrive_service.server import prepare_pages  # noqa: PLC0415  its settings are known by now

    create_dlqs(dlqs)
    write(1, FEW, dlqs)
    client = person()
    prepare_pages()  # as the web server does before it answers
    few = {name: measure(client, name, address, 2) for name, address in pages() if only in name}
    began = time.monotonic()
    write(FEW + 1, letters, dlqs, history=history)
    print(f"{letters:,} letters in {dlqs} dlqs, and {history:,} that were delivered before them")
    print(f"Written in {time.monotonic() - began:.0f} s; {times} requests a page")
    print(f"{'page':<34}{'median':>9}{'p95':>9}  ms{'statements':>12}{f'with {FEW:,}':>12}{'KiB':>7}")
    well = True
    others = () if only else chain(later(client), gathered())
    for name, address in chain((page for page in pages() if only in page[0]), others):
        cost = measure(client, name, address, times)
        before = few[name].statements if name in few else cost.statements
        is_slow = not is_fast(cost) or not before <= cost.statements <= before + MORE_STATEMENTS
        well = well and not is_slow
        print(
            f"{name:<34}{cost.median:>9.1f}{cost.p95:>9.1f}{'  !!' if is_slow else '    '}"
            f"{cost.statements:>12}{before:>12}"
            f"{cost.size / 1024:>7.0f}",
            flush=True,
        )
    load = ", ".join(f"{part:.1f}" for part in os.getloadavg())
    print(f"Load of the machine, with {os.cpu_count()} cores: {load}")
    print(f"Limits: 95 % of the requests take at most {LONGEST:.0f} ms;")
    print(f"more letters cause at most {MORE_STATEMENTS} more statements.")
    return well


def main() -> None:
    """Measure and print; exit with 1 when a page is too slow, or its statement count grows with the letters."""
    said = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    said.add_argument("--letters", type=int, default=1_000_000)
    said.add_argument("--history", type=int, default=0, help="number of letters that were delivered before them")
    said.add_argument("--times", type=int, default=40)
    said.add_argument("--dlqs", type=int, default=DLQS)
    said.add_argument("--pages", default="", help="only pages whose name has this text")
    given = said.parse_args()
    with tempfile.TemporaryDirectory(prefix="redrive-bench-") as folder, Stack(Path(folder)) as stack:
        set_up_django(stack, {})
        well = compare(given.letters, given.history, given.times, given.dlqs, given.pages)
    stack.postgres.forget()  # removes data outside of the folder
    sys.exit(not well)


if __name__ == "__main__":
    main()
