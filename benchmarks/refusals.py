"""How long what is hostile can hold a processor up: rules, letters, URLs and bodies that are written to take long.

Runs the corpora that the tests refuse or bound (tests/reprocessing/domain/corpora), each of their cases five times with
nothing kept from the time before, and prints of the best times the worst and the median per corpus, in milliseconds.
Ends with 1 where a case is above the bar in all of its five times. No server is needed.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import runpy
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from jmespath.parser import Parser  # noqa: E402 - the project's folder first

from reprocessing.domain.errors import InvalidRule  # noqa: E402
from reprocessing.domain.message import json_view  # noqa: E402
from reprocessing.domain.message.identity import LetterFacts, Selector  # noqa: E402
from reprocessing.domain.message.json_view import Unreadable  # noqa: E402
from reprocessing.domain.routing import jmespath_query, linear_regex  # noqa: E402
from reprocessing.domain.routing.conditions import Condition, Field, FieldKind, Operator  # noqa: E402
from reprocessing.domain.routing.message_fields import MessageFields  # noqa: E402
from reprocessing.domain.safety.url_policy import AllowList, allow_list  # noqa: E402
from reprocessing.gateways import http  # noqa: E402
from tests.reprocessing.domain.corpora.hostile import (  # noqa: E402
    BODIES,
    CONDITIONS,
    EXPRESSIONS,
    PAGES,
    REGEXES,
    TEXTS,
)
from tests.reprocessing.domain.corpora.network import ADDRESSES, URLS  # noqa: E402

HIGHEST = 50.0  # milliseconds of whatever holds up a letter, or a rule that is written down
HIGHEST_OF_A_PAGE = 2_000.0  # of a mebibyte that a person opens
PUBLIC = "93.184.216.34"

#: A file by itself: the package around it asks for a database.
readable = runpy.run_path(str(ROOT / "reprocessing" / "admin" / "reading.py"))["readable"]

Act = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Corpus:
    """Cases by their names, and milliseconds that each may take."""

    name: str
    cases: Sequence[tuple[str, Act]]
    bar: float = HIGHEST


def corpora() -> Iterator[Corpus]:
    """All of them, in the order in which a letter meets them."""
    yield Corpus("conditions beyond their limits", [(text, partial(parsed, text)) for text, _ in CONDITIONS])
    yield Corpus("regexes, read", [(one, partial(asked, FieldKind.TENANT, "", Operator.REGEX, one)) for one in REGEXES])
    yield Corpus("regexes, each on every text", list(searches()))
    yield Corpus(
        "expressions, read", [(text, partial(asked, FieldKind.BODY, text, Operator.EXISTS)) for text in EXPRESSIONS]
    )
    yield Corpus("expressions, each on every body", list(evaluations()))
    yield Corpus("bodies, read", [(name, partial(read, body, f)) for name, body in BODIES.items() for f in FIELDS])
    yield Corpus("URLs", [(url, partial(refused, url, [PUBLIC])) for url in URLS])
    yield Corpus("addresses", [(one, partial(refused, "http://good.example/", [one])) for one in ADDRESSES])
    yield Corpus("pages", [(f"body {n}", partial(readable, body)) for n, body in enumerate(PAGES)], HIGHEST_OF_A_PAGE)


FIELDS = (Field(FieldKind.BODY, "[*].a"), Field(FieldKind.TASK))


def parsed(text: str) -> Condition | None:
    """The condition of a text, if it is one."""
    with contextlib.suppress(InvalidRule):
        return Condition.parse(text)
    return None


def asked(kind: FieldKind, name: str, operator: Operator, *values: str) -> Condition | None:
    """The condition of its parts, if they make one."""
    with contextlib.suppress(InvalidRule):
        return Condition(Field(kind, name), operator, values)
    return None


def searches() -> Iterator[tuple[str, Act]]:
    """Every regex that is one, on every text."""
    for regex in REGEXES:
        if condition := asked(FieldKind.TENANT, "", Operator.REGEX, regex):
            yield from ((f"{regex} on {text}", partial(condition.holds, text)) for text in TEXTS)


def evaluations() -> Iterator[tuple[str, Act]]:
    """Every expression that is one, on every body that is JSON."""
    documents = [(name, json_view.read(body)) for name, body in BODIES.items()]
    for text in EXPRESSIONS:
        if not parsed(f"body:{text} exists"):
            continue
        for name, document in documents:
            if not isinstance(document, Unreadable):
                yield f"{name}: {text}", partial(jmespath_query.search, text, document)


def read(body: bytes, field: Field) -> object:
    """What a rule finds in a field of a letter that nobody has read before."""
    return MessageFields(LetterFacts("m-1", body, {}, {}), "orders-dlq", "", Selector.parse("none"), None).read(field)


def refused(url: str, addresses: Sequence[str]) -> object:
    """Why the URL may not be asked; a connection is never made."""
    allowed = allow_list(["good.example"])
    assert isinstance(allowed, AllowList)
    return http.check(url, allowed=allowed, net=http.Network(resolve=lambda _host, _port: addresses))


def best(act: Act, rounds: int) -> float:
    """Milliseconds of the quickest round: other work slows a processor, and nothing makes it quicker than it is."""
    quickest = float("inf")
    for _ in range(rounds):
        linear_regex._compiled.cache_clear()  # noqa: SLF001 - no round shall live on the one before
        jmespath_query._compiled.cache_clear()  # noqa: SLF001 - as above
        Parser.purge()
        gc.disable()
        begun = time.process_time()
        act()
        quickest = min(quickest, (time.process_time() - begun) * 1e3)
        gc.enable()
    return quickest


def main() -> None:
    """Measures and prints; ends with 1 where a case is above its bar."""
    said = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    said.add_argument("--rounds", type=int, default=5)
    given = said.parse_args()
    above = 0
    for corpus in corpora():
        took = [(best(act, given.rounds), name) for name, act in corpus.cases]
        worst, name = max(took)
        middle = median(one for one, _ in took)
        print(
            f"{corpus.name:<32}{len(took):>5} cases{worst:>9.2f} ms at the worst{middle:>9.2f} ms in the middle"
            f"  ({ascii(name)[1:50]})"
        )
        above += sum(one > corpus.bar for one, _ in took)
    print(f"{above} cases are above the bar of {HIGHEST:.0f} ms; {HIGHEST_OF_A_PAGE:.0f} ms for a page.")
    sys.exit(above > 0)


if __name__ == "__main__":
    main()
