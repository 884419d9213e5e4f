"""Failures of one cause have the same fingerprint, and no others."""

from __future__ import annotations

from types import CodeType

import pytest

from reprocessing.reasons.reason import fingerprint, reason_of, type_of


def raised(code: CodeType | str, **names: object) -> Exception:
    try:
        exec(code, names)
    except Exception as error:  # noqa: BLE001
        return error
    raise AssertionError("nothing was raised")


def mark(source: str, path: str = "/srv/app/shop.py", **names: object) -> str:
    error = raised(compile(source, path, "exec"), **names)
    return fingerprint(type_of(error), error.__traceback__)


SOURCE = "def ship(order):\n    raise ValueError(order)\nship(1)"


def test_a_fingerprint_depends_on_the_type_the_function_and_the_file() -> None:
    others = [SOURCE.replace("ValueError", "KeyError"), SOURCE.replace("ship", "sell")]
    assert len({mark(SOURCE), *map(mark, others), mark(SOURCE, "/srv/app/store.py")}) == 4


@pytest.mark.parametrize(
    ("source", "path"),
    [
        (SOURCE, "/srv/app/shop.py"), (SOURCE.replace("ship(1)", "ship('another order')"), "/srv/app/shop.py"),
        ("# a line more\n" + SOURCE, "/srv/app/shop.py"), (SOURCE, "/srv/releases/17/shop.py"),
    ],
)  # fmt: skip
def test_a_fingerprint_does_not_depend_on_values_lines_and_folders(source: str, path: str) -> None:
    assert mark(source, path) == mark(SOURCE)


def test_a_recursion_has_one_fingerprint_at_any_depth() -> None:
    deep = "def ship(n):\n    return ship(n - 1) if n else 1 / 0\nship({})"
    assert len({mark(deep.format(depth)) for depth in (1, 5, 200)}) == 1


def test_a_type_has_its_module_in_its_name() -> None:
    class Broke(Exception):
        """Ours."""

    names = [type_of(error) for error in (ValueError(), Broke())]
    assert names == ["ValueError", f"{__name__}.test_a_type_has_its_module_in_its_name.<locals>.Broke"]


class Untellable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (Untellable(), (f"{__name__}.Untellable", "(its text could not be read)")),
        (ValueError("a\0b\ud800" + "x" * 5_000), ("ValueError", "ab?" + "x" * 1_996)),
    ],
)
def test_any_text_is_cut_and_made_storable(error: Exception, told: tuple[str, str]) -> None:
    reason = reason_of(error)
    assert (reason.type, reason.message) == told
    assert len(reason.fingerprint) == 16
