"""Rewrite texts that name commands, so that they fit pages of the admin.

A command-line option becomes the label of the form field with the same effect. A command becomes a link to the page
with the same effect.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from django.forms import Field
from django.urls import reverse
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe

from reprocessing.models import DeadLetterQueue, Rule

#: Command-line options whose form field has another name, with the name of the form field.
_FIELDS: Final = {
    "celery": "kind", "new-id": "renews_id", "source": "sources", "outcome": "proof", "refire": "confirmed_fanout",
    "reset-retries": "resets_retries", "role": "role_arn", "strip-eta": "strips_eta", "strip-expires": "strips_expires",
}  # fmt: skip
#: For each command that a page of the admin replaces: model, text of the link, pattern of the page's URL name, and the
#: word in the pattern's place for the page that changes a row.
_PAGES: Final = {
    "add_dlq": (DeadLetterQueue, "add a DLQ", "admin:reprocessing_deadletterqueue_{}", "examine"),
    "add_target": (None, "add a target", "admin:reprocessing_target_{}", ""),
    "add_rule": (Rule, "add a rule", "admin:reprocessing_rule_{}", "edit"),
}
_MENTION: Final = re.compile(
    r"manage\.py (?P<command>add_dlq|add_target|add_rule)(?: (?P<name>(?!--)[^\s,;()]*[^\s,;().…]))?(?: …)?"
    r"|(?P<status>redrive_status)(?! --)"
    r"|(?P<sets>\b[Ss]et (?=--\S+ \w))?--(?P<option>[a-z][a-z-]*[a-z])"
)


def with_links(text: str, fields: Mapping[str, Field]) -> SafeString:
    """Return the text as escaped HTML, with the labels of `fields` in place of options, and links in place of commands.

    For example, "Set --mode manual" becomes "Set “Mode” to manual".
    """
    parts, end = [], 0
    for found in _MENTION.finditer(text):
        parts += [conditional_escape(text[end : found.start()]), _instead(found, fields)]
        end = found.end()
    return mark_safe("".join([*parts, conditional_escape(text[end:])]))  # noqa: S308  each part is escaped


def named_fields(text: str, fields: Mapping[str, Field]) -> set[str]:
    """Return the names of the form fields in `fields` to which a command-line option in the text belongs."""
    options = (found["option"] for found in _MENTION.finditer(text) if found["option"])
    return {name for name in (_field_of(option) for option in options) if name in fields}


def _field_of(option: str) -> str:
    return _FIELDS.get(option, option.replace("-", "_"))


def _instead(found: re.Match[str], fields: Mapping[str, Field]) -> str:
    if option := found["option"]:
        field = fields.get(_field_of(option))
        if not (field and field.label):
            return conditional_escape(found[0])
        sets = found["sets"] or ""
        return conditional_escape(f"{sets}“{field.label}”{' to' if sets else ''}")
    if found["status"]:
        return format_html('<a href="{}">the dashboard</a>', reverse("admin:index"))
    model, words, page, change = _PAGES[found["command"]]
    row = model.objects.filter(name=found["name"]).first() if model and found["name"] else None
    if row is None:
        return format_html('<a href="{}">{}</a>', reverse(page.format("add")), words)
    return format_html('<a href="{}">change {}</a>', reverse(page.format(change), args=[row.pk]), row.name)
