"""Format tables as text: as wide as the terminal, or as plain columns."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from io import StringIO
from typing import TypeAlias

Cells: TypeAlias = Sequence[str]


def plain_table(header: Cells, rows: Iterable[Cells]) -> str:
    """Return the table as plain text: aligned columns, two spaces apart."""
    lines = [[name.upper() for name in header], *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def rich_table(header: Cells, rows: Iterable[Cells], *, width: int | None = None) -> str:
    """Return the table as text, as wide as the terminal (or `width` columns); long cells are wrapped."""
    from rich import box, console, table, text  # noqa: PLC0415  # slow to import, and needed on terminals only

    made = table.Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in header:
        made.add_column(name.upper(), overflow="fold")
    for row in rows:
        made.add_row(*map(text.Text, row))
    out = StringIO()
    console.Console(file=out, width=width or shutil.get_terminal_size().columns).print(made)
    return "\n".join(line.rstrip() for line in out.getvalue().strip("\n").splitlines())
