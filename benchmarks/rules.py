"""Measure the time to evaluate a hundred rules for one letter.

For every kind there are a hundred rules that match no letter, so all are evaluated; `equals, matched` uses
letters that match a rule in the middle. Prints microseconds per letter, the fastest of several rounds, and
whether equality rules stay below `HIGHEST_COST`. No server is needed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from reprocessing.domain.message.envelope import Attribute  # noqa: E402
from reprocessing.domain.message.identity import LetterFacts, Selector  # noqa: E402
from reprocessing.domain.routing.conditions import Condition  # noqa: E402 - the project's folder first
from reprocessing.domain.routing.first_match import Action, Rule, index_rules  # noqa: E402
from reprocessing.domain.routing.message_fields import MessageFields  # noqa: E402

HIGHEST_COST = 50.0  # microseconds per letter, for equality rules that need no body
MATCHED = 50  # number of the rule that matches, in the kind `equals, matched`
SOURCE = "arn:aws:sqs:eu-west-1:000000000000:orders"
TYPE, TENANT = Selector.parse("attribute:type"), Selector.parse("attribute:tenant")

#: Return the text of rule n, by the kind of rule.
KINDS: dict[str, Callable[[int], str]] = {
    "equals, attribute": lambda n: f"attribute:region equals r-{n}",
    "equals, mixed fields": lambda n: [
        f"attribute:region equals r-{n}",
        f"dlq equals d-{n}",
        f"source equals o-{n}",
        f"type equals y-{n}",
        f"tenant equals t-{n}",
    ][n % 5],
    "equals, matched": lambda n: "tenant equals acme" if n == MATCHED else f"tenant equals t-{n}",
    "in, 10 values": lambda n: f"tenant in {','.join(f't-{n}-{v}' for v in range(10))}",
    "prefix": lambda n: f"type prefix shipping.{n}.",
    "regex": lambda n: rf"type regex ^shipping\.({n}|x)\.",
    "equals, body": lambda n: f"body:order.customer equals c-{n}",
    "equals, task": lambda n: f"task equals billing.charge_{n}",
    "equals, 100 expressions": lambda n: f"body:order.field_{n} equals x",
    "a filter, 100 expressions": lambda n: f"body:order.lines[?sku == 's-{n}'] | [0].sku exists",
}
NO_BODY = ("equals, attribute", "equals, mixed fields", "equals, matched")
SLOW = ("equals, 100 expressions", "a filter, 100 expressions")


def letters(number: int) -> Iterator[MessageFields]:
    """Yield letters with five attributes and a body of about 500 bytes, without cached values."""
    order = {
        "id": "o-1",
        "customer": "c-x",
        "total": 12.5,
        "lines": [{"sku": f"sku-{n}", "count": n} for n in range(5)],
    }
    body = json.dumps({"order": order, "type": "order.paid", "note": "x" * 240}).encode()
    values = {"region": "eu", "type": "order.paid", "tenant": "acme", "trace": "5f0c9f2e7b1d4c6a", "version": "3"}
    attributes = {name: Attribute("String", value) for name, value in values.items()}
    for place in range(number):
        yield MessageFields(LetterFacts(f"m-{place}", body, attributes, {}), "orders-dlq", SOURCE, TYPE, TENANT)


def measure(kind: str, rules: int, number: int) -> float:
    """Return the microseconds per letter, of `number` letters, with this many rules of a kind (see `KINDS`)."""
    text = KINDS[kind]
    routes = index_rules([Rule(n, f"rule-{n}", n, Action.HOLD, (Condition.parse(text(n)),)) for n in range(rules)])
    begun = time.process_time()
    for facts in letters(number):
        routes.route(facts)
    return (time.process_time() - begun) * 1e6 / number


def main() -> None:
    """Measure and print; exit with 1 when equality rules cost more than `HIGHEST_COST`."""
    said = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    said.add_argument("--letters", type=int, default=100_000)
    said.add_argument("--rules", type=int, default=100)
    said.add_argument("--rounds", type=int, default=3)
    given = said.parse_args()
    dearest = 0.0
    print(f"{given.rules} rules, {given.letters} letters; fewer where each costs more")
    for kind in KINDS:
        number = max(1, given.letters // (1 if kind in NO_BODY else 100 if kind in SLOW else 10))
        cost = min(measure(kind, given.rules, number) for _ in range(given.rounds))
        alone = min(measure(kind, 1, number) for _ in range(given.rounds))
        print(f"{kind:<28}{cost:>9.1f} us a letter{alone:>9.1f} with one rule  ({number} letters)")
        dearest = max(dearest, cost if kind in NO_BODY else 0.0)
    print(f"Equality rules that need no body: {dearest:.1f} us a letter at most; the limit is {HIGHEST_COST:.0f} us.")
    sys.exit(dearest > HIGHEST_COST)


if __name__ == "__main__":
    main()
