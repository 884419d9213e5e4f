"""Read environment variables, and collect a problem for each unusable variable."""

from __future__ import annotations

import re
from collections.abc import Mapping

from redrive_service.environment.addresses import is_visible, parts
from redrive_service.environment.secret_files import read_secret_files

INVISIBLE = "a space, a line break or another character that nobody sees"


class Variables:
    """The environment variables, including secrets read from files, and the problems found so far."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self.all, self._of_files = read_secret_files(variables)
        self.problems = list(self._of_files.values())

    def value(self, name: str) -> str:
        """Return the value of the variable, or an empty text if the variable is missing."""
        return self.all.get(name, "").strip()

    def required(self, name: str, cure: str) -> str:
        """Return the value. If it is missing, add a problem, whose text ends with `cure`, which says what to set."""
        value = self.value(name)
        if not value and name not in self._of_files:
            self.problems.append(f"{name} is not set. {cure}")
        return value

    def words(self, name: str) -> tuple[str, ...]:
        """Return the parts of a comma-separated value, without spaces around them and without empty parts."""
        return tuple(word.strip() for word in self.value(name).split(",") if word.strip())

    def yes_or_no(self, name: str) -> bool:
        """Return whether the value is yes. A missing variable means no."""
        value = self.value(name).lower() or "no"
        if value not in {"yes", "no"}:
            self.problems.append(f"{name} must be yes or no.")
        return value == "yes"

    def number(self, name: str, *, default: int, least: int, most: int) -> int:
        """Return the whole number from `least` to `most`. For another value, add a problem, and return `default`."""
        value = self.value(name) or str(default)
        if not re.fullmatch(r"[0-9]{1,9}", value) or not least <= int(value) <= most:
            self.problems.append(f"{name} must be a whole number from {least} to {most:,}. Unset, it is {default}.")
            return default
        return int(value)

    def url(self, name: str, cure: str, *, schemes: tuple[str, ...]) -> str:
        """Return the value if it is a URL with one of these schemes. Otherwise, add a problem, and return "".

        The text of the problem ends with `cure`, which says what to set.
        """
        value = self.required(name, cure)
        if not value or (is_visible(value) and parts(value, schemes)):
            return value
        if not is_visible(value):
            self.problems.append(f"{name} holds {INVISIBLE}. Remove it, or percent-encode it in a password. {cure}")
        elif value.startswith(tuple(f"{scheme}://" for scheme in schemes)):
            hint = "Its port must be from 1 to 65535, and special characters in a password must be percent-encoded."
            self.problems.append(f"{name} cannot be read. {hint} {cure}")
        else:
            self.problems.append(f"{name} is not a URL that begins with {schemes[0]}://. {cure}")
        return ""
