"""Write docs/performance.md from the stored figures of the scenarios."""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from benchmarks.drains.scenarios import SCENARIOS, SHORT, Scenario

Figures = dict[str, Any]
Rounds = Sequence[dict[str, Any]]

_HEAD: Final = """\
# Performance

`python -m benchmarks.performance` writes this page from `docs/performance.json`, which has every round. Nothing here is
typed by hand.

## What is measured

A DLQ is filled, and one worker (two processes unless the scenario says otherwise) drains it to its source queue on
PostgreSQL, Valkey and the [local SQS](local_sqs.md), all on one machine. In each round the competitors take turns with
equal queues: the service, and a boto3 script that receives, sends and deletes ten messages at a time, with 1 and with
16 threads. A script keeps no record and no order. It moves 20,000 messages at most (to HTTP: 400 for each thread),
since its rate does not depend on the backlog.

Unless the scenario says otherwise: bodies of 510 bytes, ten messages of each ordering key, outcome `accepted`. There is
no rate limit, no ramp-up and no wave, since these delay messages by design, and the DLQ is polled every 5 s. Rounds
share one database, so in later rounds it has the messages of earlier rounds. Before the first round of the scenarios
`history-1m` and `history-10m`, all indexes are read from the disk: a service that has written so many messages has
used each page of them again and again. Each round is checked against the call log and the database: every message was
sent as often as planned, in order, and is delivered, and its copy in the DLQ is deleted. A round that fails a check
gives no figures.

PostgreSQL has the settings that [Production](production.md) recommends: a quarter of the memory as `shared_buffers`,
and a `max_wal_size` of 16 GB. Where the machine below is described without them, it had its default settings. Not
measured: disks (the sandbox's PostgreSQL runs with `fsync=off`; WAL shows what a disk would write), networks (except in
the scenarios with latency), and AWS itself. The local SQS uses the same cores as the service.
"""

_RATES: Final = """\
## Messages per second

Median, and the range if there were several rounds. The time ends when the last message is delivered and its copy
deleted. It does not include the empty receives (some seconds) by which the service learns that the DLQ is empty: the
scripts know the number of messages. With outcome `absence` it includes the wait for outcomes: seconds here, minutes on
AWS, which [limits the speed](outcomes.md#speed). Ratio: the service's median divided by the script's.
"""

_PHASES: Final = """\
## Where the time goes

The order of a key is known only when the DLQ is empty: the first message to be sent may be the last one to arrive. So
with ordering keys, capture and replay follow one another. The table shows the messages per second of each, and the rate
that the two give together. A script does both at once: to be as fast as the script, capture and replay must each be
about twice as fast as the script. Last column: the rate of replay divided by the rate of the script with 1 thread.
"""

_COSTS: Final = """\
## What one message costs

Medians. SQS calls: on the DLQ and the source queue. Statements: without transaction control and foreign key checks.
Processor time in ms by process; the worker's before and after the first send, mostly capture and replay.
"""

_FLAT: Final = """\
## Does it stay flat?

Messages per second of the first tenth of all attempts, of all first attempts, and of the last tenth (`-`: the time
was too short); memory of the worker's processes at the end (PSS counts shared pages once); max connections to
PostgreSQL.
"""

_BASELINE: Final = """\
## Compared with `plain`, in turns

A machine is not equally fast all day, so before each round of these scenarios, `plain` is measured: in its second
round, with a database of its own. Medians; each ratio is the median of the rounds' ratios, scenario divided by `plain`.
PostgreSQL: its processor time for a message. Its ratio should be small, the other ratios large.
"""

_HOT: Final = """\
## One hot key

A key's messages are sent one at a time, so the hot key takes long. The other keys must not wait for it. Messages per
second, until the last message of the other keys, and of the hot key, is delivered; and the rate of the other keys,
divided by the rate of all first attempts of `plain`, which has as many messages as the other keys, and is measured
before each round:
"""


def page(figures: Figures) -> str:
    """Return the text of docs/performance.md. `figures`: by scenario."""
    known = [(scenario, figures[scenario.name]) for scenario in SCENARIOS if scenario.name in figures]
    parts = [
        _HEAD, _machines(known), _RATES, _rates(known), _PHASES, _phases(known), _COSTS, _costs(known), _FLAT,
        _flat(known), _BASELINE, _compared(known), _HOT, _hot(known),
        "## How far one PostgreSQL carries\n", _limits(figures.get("plain")), _scenarios(figures),
    ]  # fmt: skip
    return "\n".join(parts)


Known = Sequence[tuple[Scenario, Figures]]


def _machines(known: Known) -> str:
    by_machine = defaultdict(list)
    for scenario, found in known:
        by_machine[found["machine"]].append(f"`{scenario.name}`")
    if not by_machine:
        return "**There are no figures yet.** Run the scenarios below on a machine that does nothing else.\n"
    if len(by_machine) == 1:
        return f"Machine: {next(iter(by_machine))}.\n"
    return "\n".join(f"- {machine}: {', '.join(names)}" for machine, names in by_machine.items()) + "\n"


def _rates(known: Known) -> str:
    head = ["scenario", "messages", "this service", "1 thread", "ratio", "16 threads", "ratio"]
    rows = []
    for scenario, found in known:
        rounds, row = found["rounds"], [f"`{scenario.name}`", _letters(scenario)]
        service = [result["service"] for result in rounds]
        row.append(_spread(service))
        for threads in ("1", "16"):
            loops = [result["movers"][threads] for result in rounds]
            row += [_spread(loops), f"{statistics.median(service) / statistics.median(loops):.2f}"]
        rows.append(row)
    return _table(head, rows)


def _phases(known: Known) -> str:
    rows = []
    for scenario, found in known:
        letters, rounds = int(re.findall(r"--letters (\d+)", scenario.options)[0]), found["rounds"]
        taken = [statistics.median(result["seconds"][name] for result in rounds) for name in ("capture", "replay")]
        rates, script = [letters / seconds for seconds in (*taken, sum(taken))], _one_thread(rounds)
        rows.append([f"`{scenario.name}`", *map(_number, rates), f"{rates[1] / script:.2f}"])
    return _table(["scenario", "capture", "replay", "both", "replay by script"], rows)


def _one_thread(rounds: Rounds) -> float:
    return float(statistics.median(result["movers"]["1"] for result in rounds))


def _costs(known: Known) -> str:
    head = [
        "scenario", "SQS calls", "statements", "WAL, KB", "worker: capture", "worker: replay", "PostgreSQL", "Valkey",
        "local SQS",
    ]  # fmt: skip
    return _table(
        head,
        [
            [
                f"`{scenario.name}`", f"{_median(rounds, 'calls'):.2f}", f"{_median(rounds, 'statements'):.3f}",
                f"{_median(rounds, 'wal') / 1000:.1f}", f"{_spent(rounds, 'worker', 'capture'):.2f}",
                f"{_spent(rounds, 'worker', 'replay'):.2f}",
                *(f"{_spent(rounds, part):.2f}" for part in ("PostgreSQL", "Valkey", "local SQS")),
            ]
            for scenario, found in known
            for rounds in [found["rounds"]]
        ],
    )  # fmt: skip


def _flat(known: Known) -> str:
    head = ["scenario", "first tenth", "all", "last tenth", "RSS, MB", "PSS, MB", "connections"]
    rows = []
    for scenario, found in known:
        rounds = found["rounds"]
        rates = [_middle(result[name] for result in rounds) for name in ("first_tenth", "sent", "last_tenth")]
        sizes = [_middle(result["memory"].get(name) for result in rounds) for name in ("rss", "pss")]
        rows.append(
            [
                f"`{scenario.name}`",
                *map(_number, rates),
                *(_number(size and size / 1e6) for size in sizes), str(max(result["connections"] for result in rounds)),
            ]
        )  # fmt: skip
    return _table(head, rows)


def _compared(known: Known) -> str:
    head = [
        "scenario", "messages/s", "`plain`: messages/s", "ratio", "first attempts/s", "`plain`: first attempts/s",
        "ratio", "PostgreSQL, ms", "`plain`: PostgreSQL, ms", "ratio",
    ]  # fmt: skip
    rows = []
    for scenario, found in known:
        pairs = _pairs(found)
        if not pairs or pairs[0][0]["hot"] is not None:  # messages of one key wait for each other: see _hot
            continue
        row = [f"`{scenario.name}`"]
        for name in ("service", "sent"):
            row += _ratio([(here[name], plain[name]) for here, plain in pairs], digits=0)
        row += _ratio([tuple(_spent([side], "PostgreSQL") for side in pair) for pair in pairs], digits=2)
        rows.append(row)
    return _table(head, rows)


def _pairs(found: Figures) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return the rounds that have a baseline, each with it."""
    return [(result, baseline) for result in found["rounds"] if (baseline := result.get("baseline"))]


def _ratio(pairs: Sequence[tuple[float, ...]], *, digits: int) -> list[str]:
    """Return the medians of both sides, and the median of the ratios, as texts."""
    both = [f"{statistics.median(side):,.{digits}f}" for side in zip(*pairs, strict=True)]
    return [*both, f"{statistics.median(here / plain for here, plain in pairs):.2f}"]


def _hot(known: Known) -> str:
    rows = []
    for scenario, found in known:
        others, hot = ([result[name] for result in found["rounds"]] for name in ("others", "hot"))
        if others[0] is None:
            continue
        pairs = [(result["others"], plain["sent"]) for result, plain in _pairs(found)]
        share = _ratio(pairs, digits=0)[-1] if pairs else "-"
        rows.append([f"`{scenario.name}`", _spread(others), _spread(hot), share])
    return _table(["scenario", "other keys", "hot key", "other keys by `plain`"], rows)


def _limits(plain: Figures | None) -> str:
    if plain is None:
        return "Computed from scenario `plain`, which was not run yet.\n"
    rounds = plain["rounds"]
    database, worker = _spent(rounds, "PostgreSQL"), _spent(rounds, "worker")
    carries = [f"{cores} cores: {1000 * cores / database:,.0f}" for cores in (2, 4, 8)]
    return (
        f"In scenario `plain` a message costs PostgreSQL {database:.3f} ms and the worker {worker:.3f} ms of processor"
        f" time. A PostgreSQL whose cores do nothing else can thus carry at most 1,000 * cores / {database:.3f}"
        f" messages/s ({'; '.join(carries)}), and each core of the workers {1000 / worker:,.0f}. These are bounds from"
        " processor time alone: locks, disks and the network come on top. `processes-4` and `processes-8` show that"
        " more processes than cores cost PostgreSQL little; how the service scales with cores was not measured."
        f" A disk must write {_median(rounds, 'wal') / 1000:.1f} KB of WAL for a message.\n"
    )


def _scenarios(figures: Figures) -> str:
    rows = []
    for scenario in SCENARIOS:
        found = figures.get(scenario.name)
        told = [found["date"], found["commit"], str(len(found["rounds"])), f"{found['load']}"] if found else [""] * 4
        rows.append([f"`{scenario.name}`", scenario.about, f"`{scenario.options}`", *told])
    return f"""\
## Repeat it

```
make bench                                                       # one round of {SHORT}
.venv/bin/python -m benchmarks.performance --only history-1m     # five rounds of one scenario
.venv/bin/python -m benchmarks.performance                       # five rounds of all: many hours
.venv/bin/python benchmarks/drain.py --help                      # any other drain, with the options below
```

Use a machine that does nothing else. The load before a scenario includes the scenario that ran just before it. Figures
of scenarios that are not run stay here, with their date (`+`: the commit, with changes). In `TMPDIR`, `history-10m`
needs 40 GB and `backlog-1m` 20 GB.

{_table(["scenario", "what is special", "options of `drain.py`", "date", "commit", "rounds", "load before"], rows)}"""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _letters(scenario: Scenario) -> str:
    found = re.search(r"--letters (\d+)", scenario.options)
    return f"{int(found[1]):,}" if found else ""


def _spread(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    if len(known) < 2:  # noqa: PLR2004  # one value has no range
        return _number(known[0] if known else None)
    return f"{statistics.median(known):,.0f} ({min(known):,.0f} to {max(known):,.0f})"


def _middle(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _median(rounds: Rounds, name: str) -> float:
    return float(statistics.median(result[name] for result in rounds))


def _spent(rounds: Rounds, part: str, stage: str | None = None) -> float:
    """Return the processor time (ms per message) of a part of the stack, in one stage; None: in all stages."""
    of: Callable[[dict[str, float]], float] = (
        (lambda stages: sum(stages.values())) if stage is None else (lambda stages: stages[stage])
    )
    return statistics.median(of(result["processor"].get(part, {"capture": 0.0, "replay": 0.0})) for result in rounds)
