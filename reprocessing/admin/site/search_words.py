"""Split the text of a list's search box into words."""

from __future__ import annotations

from django.utils.text import smart_split, unescape_string_literal


def search_words(text: str) -> list[str]:
    """Return the words of a search text, as Django's own lists do. Spaces in quotes do not separate words."""
    return [
        unescape_string_literal(word) if word[0] in {'"', "'"} and word[0] == word[-1] else word
        for word in smart_split(text)
    ]
