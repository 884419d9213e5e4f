"""Write the text of a notification about the incidents that a destination was not notified of yet, without payloads.

The text has one section for each kind of event and stage: incidents that began, that last, or that ended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from string import Formatter
from typing import Final

from reprocessing.domain.notifications.event import EventKind
from reprocessing.domain.notifications.wording import DASHBOARD, WORDING, Page, Wording

#: Max characters of a text, because some chats accept only 2,000 characters.
LONGEST_BODY: Final = 1_900
LONGEST_TITLE: Final = 100
#: Max incidents of one kind that a text describes; further incidents are only counted.
EXAMPLES: Final = 3

Facts = Mapping[str, str | int | float]
#: A function that returns the URL of the admin's page for a model and a row's id (empty: the list of all rows). An
#: empty URL: the admin's address is not known.
Link = Callable[[str, str], str]


class Stage(StrEnum):
    """What a notification says about an incident: it began, it lasts, or it ended. The most urgent comes first."""

    OPENED = "opened"
    REMINDED = "reminded"
    ENDED = "ended"


class Tone(StrEnum):
    """The severity of a text; the values are Apprise's notify types."""

    FAILURE = "failure"
    WARNING = "warning"
    INFO = "info"
    SUCCESS = "success"


@dataclass(frozen=True, slots=True)
class IncidentFacts:
    """One incident (an event that people are notified of), with its facts.

    `times`: how often the event was observed. `ended_at`: None if the incident has not ended.
    """

    subject: str
    facts: Facts
    times: int
    opened_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class TextSection:
    """All incidents of one kind that began, that last, or that ended: their number (`many`), and up to 3 examples."""

    kind: EventKind
    stage: Stage
    many: int
    examples: Sequence[IncidentFacts]


@dataclass(frozen=True, slots=True)
class Text:
    """A text to send. `link`: the URL of the first incident's page or of the dashboard. Empty if it is not known."""

    title: str
    body: str
    tone: Tone
    link: str = ""


_TONES: Final = tuple(Tone)
_STAGES: Final = tuple(Stage)
_CUT: Final = "…\nThe text is cut here. The admin shows the rest."


def compose(sections: Sequence[TextSection], *, place: str, link: Link) -> Text:
    """Return one text for all sections. Urgent kinds of events come first; among equally urgent kinds, new incidents.

    `sections`: at least one, each with at least one example. `place`: the name of this environment; may be empty.
    """
    ordered = sorted(sections, key=_rank)
    first = ordered[0]
    many = sum(section.many for section in ordered)
    title = f"[{place}] {_headline(first, first.examples[0])}" if place else _headline(first, first.examples[0])
    more = f" (and {many - 1:,} more)" if many > 1 else ""
    parts = [_section(section, link) for section in ordered]
    return Text(
        title=_cut(title, LONGEST_TITLE - len(more)) + more,
        body=_cut("\n\n".join(parts), LONGEST_BODY, _CUT),
        tone=_tone(first),
        link=_address(WORDING[first.kind].page, first.examples[0].facts, link),
    )


def trial_text(place: str, destination: str, link: Link) -> Text:
    """Return the text that the command `test_notification` sends to a destination."""
    address = link("", "")
    body = (
        f"This is a test of the destination {destination}. Nothing has happened.\n"
        "What the service does: it has sent this test because a person ran test_notification.\n"
        "What you can do: nothing. Notifications of this service arrive here."
    )
    title = f"[{place}] Test notification" if place else "Test notification"
    return Text(title, body + (f"\n{address}" if address else ""), Tone.INFO, address)


def duration(seconds: float) -> str:
    """Return a duration in a suitable unit: 40 s, 12 min, 5 h, 3 days."""
    for limit, unit, name in ((120, 1, "s"), (7_200, 60, "min"), (172_800, 3_600, "h")):
        if seconds < limit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds / 86_400:.0f} days"


def _section(section: TextSection, link: Link) -> str:
    wording = WORDING[section.kind]
    first = section.examples[0]
    lines: list[str] = []
    if section.many > len(section.examples) or section.many > 1:
        lines.append(f"{section.many:,} {wording.many}" + (", ended:" if section.stage is Stage.ENDED else ":"))
    for incident in section.examples[:EXAMPLES]:
        lines += _incident(section, incident, wording)
    if section.many > EXAMPLES:
        lines.append(f"… and {section.many - EXAMPLES:,} more.")
    if section.stage is not Stage.ENDED:
        lines.append(f"What the service does: {_filled(wording.service, first.facts)}")
        lines.append(f"What you can do: {_filled(_advice(wording, first.facts), first.facts)}")
    page = wording.page if section.many == 1 else Page(wording.page.model)
    if address := _address(page, first.facts, link):
        lines.append(address)
    return "\n".join(lines)


def _incident(section: TextSection, incident: IncidentFacts, wording: Wording) -> list[str]:
    sentences = [_headline(section, incident) + "."]
    if section.stage is Stage.ENDED and incident.ended_at is not None:
        lasted = (incident.ended_at - incident.opened_at).total_seconds()
        sentences.append(f"It began at {incident.opened_at:%Y-%m-%d %H:%M} UTC and lasted {duration(lasted)}.")
        return [" ".join(sentences)]
    sentences.append(f"{'Since' if not section.kind.is_moment else 'At'} {incident.opened_at:%Y-%m-%d %H:%M} UTC.")
    sentences += [
        _filled(sentence, incident.facts) for sentence in wording.more if _names(sentence) <= incident.facts.keys()
    ]
    return [" ".join(sentences)]


def _headline(section: TextSection, incident: IncidentFacts) -> str:
    wording = WORDING[section.kind]
    match section.stage:
        case Stage.OPENED:
            return _filled(wording.opened, incident.facts)
        case Stage.REMINDED:
            return f"Still: {_filled(wording.opened, incident.facts)}"
        case Stage.ENDED:
            return _filled(wording.over or wording.opened, incident.facts)


def _tone(section: TextSection) -> Tone:
    if section.stage is Stage.ENDED:
        return Tone.SUCCESS
    if section.kind is EventKind.RUN_FINISHED:
        return Tone.INFO
    return Tone.FAILURE if section.kind.is_urgent else Tone.WARNING


def _rank(section: TextSection) -> tuple[int, int]:
    return _TONES.index(_tone(section)), _STAGES.index(section.stage)


def _address(page: Page, facts: Facts, link: Link) -> str:
    row = str(facts.get(page.row, "")) if page.row else ""
    if page.row and not row:
        page = DASHBOARD
    return link(page.model, row)


def _advice(wording: Wording, facts: Facts) -> str:
    return wording.person if _names(wording.person) <= facts.keys() else wording.person_without


def _names(sentence: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(sentence) if name}


def _filled(sentence: str, facts: Facts) -> str:
    """Return a sentence whose placeholders, such as {dlq}, are replaced by facts. Facts may contain braces."""
    return sentence.format_map({name: _shown(name, fact) for name, fact in facts.items()})


def _shown(name: str, fact: str | float) -> str:
    if isinstance(fact, str):
        return fact.rstrip(".") if name == "why" else fact
    if name == "seconds":
        return duration(fact)
    return str(fact) if name.endswith("_id") else f"{fact:,.12g}"


def _cut(text: str, most: int, mark: str = "…") -> str:
    return text if len(text) <= most else text[: most - len(mark)] + mark
