"""Measure how long hostile input can occupy a processor: rules, messages, URLs and bodies written to be slow.

Runs the corpora that the tests refuse or limit (tests/reprocessing/domain/corpora), every case five times without
caches, and prints the worst and the median of the best times per corpus, in milliseconds.
Exits with 1 when a case is above its limit in all five runs. No server is needed.
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
from reprocessing.domain.routing.condition_fields import Field, FieldKind  # noqa: E402
from reprocessing.domain.routing.conditions import Condition, Operator  # noqa: E402
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

HIGHEST = 50.0  # milliseconds for processing a letter, or for saving a rule
HIGHEST_OF_A_PAGE = 2_000.0  # for a body of 1 MiB that a person opens
PUBLIC = "93.184.216.34"

#: Loaded as a single file: its package needs a database.
readable = runpy.run_path(str(ROOT / "reprocessing" / "admin" / "messages" / "readable_bytes.py"))["readable"]

Act = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Corpus:
    """Cases by name, and the limit of each in milliseconds."""

    name: str
    cases: Sequence[tuple[str, Act]]
    limit: float = HIGHEST


def corpora() -> Iterator[Corpus]:
    """Yield every corpus, in the order in which a letter is processed."""
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
    """Return the condition in a text; None: the text is refused."""
    with contextlib.suppress(InvalidRule):
        return Condition.parse(text)
    return None


def asked(kind: FieldKind, name: str, operator: Operator, *values: str) -> Condition | None:
    """Return the condition with these parts; None: it is refused."""
    with contextlib.suppress(InvalidRule):
        return Condition(Field(kind, name), operator, values)
    return None


def searches() -> Iterator[tuple[str, Act]]:
    """Yield a case for every pair of a valid regex and a text: the regex is searched in the text."""
    for regex in REGEXES:
        if condition := asked(FieldKind.TENANT, "", Operator.REGEX, regex):
            yield from ((f"{regex} on {text}", partial(condition.holds, text)) for text in TEXTS)


def evaluations() -> Iterator[tuple[str, Act]]:
    """Yield a case for every pair of a valid expression and a JSON body: the expression is evaluated on the body."""
    documents = [(name, json_view.read(body)) for name, body in BODIES.items()]
    for text in EXPRESSIONS:
        if not parsed(f"body:{text} exists"):
            continue
        for name, document in documents:
            if not isinstance(document, Unreadable):
                yield f"{name}: {text}", partial(jmespath_query.search, text, document)


def read(body: bytes, field: Field) -> object:
    """Return the value of a rule's field in a new letter, which has no cached values."""
    return MessageFields(LetterFacts("m-1", body, {}, {}), "orders-dlq", "", Selector.parse("none"), None).read(field)


def refused(url: str, addresses: Sequence[str]) -> object:
    """Return why the URL is refused if its host has these IP addresses; no connection is made."""
    allowed = allow_list(["good.example"])
    assert isinstance(allowed, AllowList)
    return http.check(url, allowed=allowed, net=http.Network(resolve=lambda _host, _port: addresses))


def best(act: Act, rounds: int) -> float:
    """Return the milliseconds of the fastest round: other work can only make a round slower."""
    quickest = float("inf")
    for _ in range(rounds):
        linear_regex._compiled.cache_clear()  # noqa: SLF001 - no round may use an earlier round's cache
        jmespath_query._compiled.cache_clear()  # noqa: SLF001 - as above
        Parser.purge()
        gc.disable()
        begun = time.process_time()
        act()
        quickest = min(quickest, (time.process_time() - begun) * 1e3)
        gc.enable()
    return quickest


def main() -> None:
    """Measure and print; exit with 1 when a case is above its limit."""
    said = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    said.add_argument("--rounds", type=int, default=5)
    given = said.parse_args()
    above = 0
    for corpus in corpora():
        took = [(best(act, given.rounds), name) for name, act in corpus.cases]
        worst, name = max(took)
        middle = median(one for one, _ in took)
        print(
            f"{corpus.name:<32}{len(took):>5} cases{worst:>9.2f} ms at most{middle:>9.2f} ms median"
            f"  ({ascii(name)[1:50]})"
        )
        above += sum(one > corpus.limit for one, _ in took)
    print(f"{above} cases are above their limit: {HIGHEST:.0f} ms, or {HIGHEST_OF_A_PAGE:.0f} ms for a page.")
    sys.exit(above > 0)


if __name__ == "__main__":
    main()
