"""Bodies and attributes that attack whoever shows, logs, formats or stores them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.proof.poison.corpus.payload import Payload, text


def some() -> Iterator[Payload]:
    """Every one: as a body, as a JSON value under the names that selectors ask for, and as an attribute."""
    for name, attack in _ATTACKS.items():
        yield Payload(f"injection: {name}", attack)
    for name in _EVERYWHERE:
        attack = _ATTACKS[name]
        yield Payload(
            f"injection: {name}, as an attribute", f"attacked by {name}", {"key": text(attack), "n": text(attack)}
        )


_ATTACKS: Final = {
    "SQL quote": "'; DROP TABLE redrive_letter; --",
    "SQL union": "1 UNION SELECT body FROM redrive_payload -- ",
    "SQL dollar quotes": "$$; DELETE FROM redrive_run; $$",
    "SQL copy": "\\.\n\\N\tcopied out",
    "SQL like": "100%_like_\\%_pattern",
    "psycopg formats": "%s %(name)s %% %b psycopg",
    "C formats": "%n%n%n%x%x%s%s formats",
    "Python formats": "{0.__class__.__init__.__globals__} {named!r}",
    "Django templates": "{{ request.user }}{% debug %}{# template #}",
    "Jinja": "{{ ''.__class__.__mro__ }} jinja",
    "shell": "$(touch /tmp/never) `id` | cat && shell",
    "a path": "../../../../etc/passwd%00.json path",
    "a null path": "file:///dev/null path",
    "log line": "first\nCRITICAL 2099-01-01 forged-log-line everything is well",
    "log line of CR": "first\rINFO forged-by-carriage-return",
    "terminal": "\u009b31mred\u009b0m terminal \u0090q\u009c",
    "script": "<script>alert('script-body')</script>",
    "image": '"><img src=x onerror=alert("image-body")>',
    "SVG": "<svg/onload=alert('svg-body')>",
    "attribute break": "' onmouseover='alert(1) attribute-break",
    "link": "javascript:alert('link-body')",
    "HTML entities": "&lt;b&gt; &amp;amp; &#x3C;script entity",
    "end of a textarea": "</textarea></pre></script>--><b>ended",
    "CDATA": "<![CDATA[<x>]]>]]> cdata",
    "header": "value\r\nX-Injected: header-injected\r\n\r\nbody",
    "LDAP": "*)(uid=*))(|(uid=* ldap",
    "JNDI": "${jndi:ldap://127.0.0.1/a} lookups",
    "a pattern that never ends": "a" * 5_000 + "!",
    "JMESPath": "key || `secret` | [?contains(@, 'x')] jmespath",
    "a selector": "attribute:other || body:other.id, message-id",
    "an ARN": "arn:aws-cn:iam::999999999999:role/*",
    "an access key": "AKIAIOSFODNN7EXAMPLE / wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "a mark as body": "6ba7b810-9dad-11d1-80b4-00c04fd430c8:1",
}
_EVERYWHERE: Final = (
    "SQL quote", "SQL copy", "psycopg formats", "Python formats", "Django templates", "log line", "log line of CR",
    "terminal", "script", "image", "attribute break", "header", "a mark as body",
)  # fmt: skip
