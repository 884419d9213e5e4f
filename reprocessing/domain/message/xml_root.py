"""Where a document of XML begins: what its root is called."""

from __future__ import annotations

import re
from typing import Final

# Beside white space: declarations and instructions, comments, a document type without a set of its own. Each ends where
# it ends first, and is looked for once: no text makes it take longer than its length.
_BEFORE: Final = re.compile(r"\s*+<(?:\?.*?\?>|!--.*?-->|![A-Za-z][^<>\[\]]*+>)", re.DOTALL)
_ROOT: Final = re.compile(r"\s*+<([^\W\d][\w.:-]{0,99})[\s/>]")


def root(text: str) -> str:
    """The name of the root; empty: there is none."""
    at = 1 if text.startswith("\ufeff") else 0
    while before := _BEFORE.match(text, at):
        at = before.end()
    found = _ROOT.match(text, at)
    return found[1] if found else ""
