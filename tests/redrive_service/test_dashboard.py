"""The dashboard asks for what the service tells: every metric is drawn, and every name and label in it exists."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reprocessing.domain.aws.metric_names import METRICS

BOARD: dict[str, Any] = json.loads((Path(__file__).parents[2] / "docs/grafana/redrive.json").read_text())
LABELS = {name: set(one.labels) for one in METRICS for name in one.exposed}


def expressions() -> Iterator[str]:
    for panel in BOARD["panels"]:
        yield from (target["expr"] for target in panel.get("targets", ()))
    yield from (one["query"] for one in BOARD["templating"]["list"] if one["type"] == "query")


def test_every_metric_is_drawn_and_no_other() -> None:
    asked = {name for each in expressions() for name in re.findall(r"redrive_[a-z_]+", each)}
    assert asked == set(LABELS)


def test_every_label_in_a_query_is_one_of_its_metric() -> None:
    found = [
        (name, label)
        for each in expressions()
        for name, matchers in re.findall(r"(redrive_[a-z_]+)\{([^}]*)\}", each)
        for label in re.findall(r"([a-z_]+)\s*[=!]", matchers)
    ]
    assert [(name, label) for name, label in found if label not in LABELS[name]] == []
    assert len(found) > 5


def test_groups_and_legends_name_labels_that_the_query_keeps() -> None:
    for panel in BOARD["panels"]:
        for target in panel.get("targets", ()):
            names = re.findall(r"redrive_[a-z_]+", target["expr"])
            grouped = {label for by in re.findall(r"by \(([^)]*)\)", target["expr"]) for label in by.split(", ")}
            kept = grouped if " by " in target["expr"] or target["expr"].startswith(("sum(", "max(", "min(")) else None
            known = set.union(*(LABELS[name] for name in names)) | {"le"}
            legend = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert grouped <= known, target["expr"]
            assert legend <= (known if kept is None else kept), target


def test_no_panel_lies_upon_another() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in BOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells
