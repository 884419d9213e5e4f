"""A bug as it is planted: which guard is taken out, which promise that breaks, and which test has to notice."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug:
    """One breakage of the product, of a line or a few.

    Attributes:
        name: words with dashes.
        breaks: the promise that does not hold any more, in a sentence.
        file: from the project's folder.
        old: text that occurs in it once.
        new: what stands there instead.
        caught_by: the node id of the test that fails then; of several cases of it, one is enough.
        also: what else is exchanged in the file, old for new, where one guard stands behind another.
        alone: its test measures, and wants a database in which no other test has been.
    """

    name: str
    breaks: str
    file: str
    old: str
    new: str
    caught_by: str
    also: tuple[tuple[str, str], ...] = ()
    alone: bool = False

    def planted(self, text: str) -> str:
        """The file's text with the bug in it.

        Raises:
            ValueError: the old text is not there, or not once: the product has changed, and the bug with it.
        """
        for old, new in ((self.old, self.new), *self.also):
            if (found := text.count(old)) != 1:
                raise ValueError(f"{self.name}: its old text occurs {found} times in {self.file}; write it anew")
            text = text.replace(old, new)
        return text
