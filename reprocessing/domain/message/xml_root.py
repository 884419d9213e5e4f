"""Find the root element of an XML document."""

from __future__ import annotations

import re
from typing import Final

# What may precede the root: declarations, comments, a document type without internal subset. The quantifiers are
# possessive, so that the search takes linear time.
_BEFORE: Final = re.compile(r"\s*+<(?:\?.*?\?>|!--.*?-->|![A-Za-z][^<>\[\]]*+>)", re.DOTALL)
_ROOT: Final = re.compile(r"\s*+<([^\W\d][\w.:-]{0,99})[\s/>]")


def root(text: str) -> str:
    """Return the name of the root element; "" if the text does not begin like an XML document."""
    at = 1 if text.startswith("\ufeff") else 0
    while before := _BEFORE.match(text, at):
        at = before.end()
    found = _ROOT.match(text, at)
    return found[1] if found else ""
