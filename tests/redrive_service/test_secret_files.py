"""A secret may be in a file, which NAME_FILE names; what is wrong with the file is told without path or content."""

from __future__ import annotations

from pathlib import Path

import pytest

from redrive_service.environment import read
from redrive_service.environment.secret_files import SECRETS
from tests.redrive_service.test_environment import COMPLETE, problems


def test_every_secret_may_come_from_a_file_with_a_line_break_at_its_end(tmp_path: Path) -> None:
    values = {
        **{name: COMPLETE[name] for name in ("SECRET_KEY", "DATABASE_URL", "REDIS_URL")},
        "REDRIVE_SECRETS": "shop=whsec_" + "QUJD" * 8,
        "REDRIVE_METRICS_TOKEN": "t" * 32,
        "REDRIVE_PAYLOAD_KEYS": f"new={'QUJD' * 10}QUI=\nold={'QUJE' * 10}QUI=",
        "REDRIVE_NOTIFY_OPS": "mailto://u:p@mail.example.com/?to=ops@example.com",
        "REDRIVE_PUBLIC_URL": "https://redrive.example.com",
    }
    in_files = {**COMPLETE, **values}
    for name in (*SECRETS, "REDRIVE_NOTIFY_OPS"):
        (tmp_path / name).write_text(f"{values[name]}\n")
        in_files[f"{name}_FILE"] = str(tmp_path / name)
        del in_files[name]

    assert read(in_files) == read({**COMPLETE, **values})


def test_a_destination_named_file_stays_a_destination() -> None:
    url = "mailto://u:p@mail.example.com/?to=ops@example.com"
    more = {"REDRIVE_NOTIFY_FILE": url, "REDRIVE_PUBLIC_URL": "https://redrive.example.com"}

    assert read({**COMPLETE, **more}).destinations == {"file": url}


def test_what_is_no_secret_is_never_read_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("evil.example.com")
    without = {name: value for name, value in COMPLETE.items() if name != "ALLOWED_HOSTS"}

    (problem,) = problems({**without, "ALLOWED_HOSTS_FILE": str(tmp_path / "hosts")})

    assert problem.startswith("ALLOWED_HOSTS is not set.")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "No such file or directory"),
        (b"", "the file is empty"),
        (b" \n", "the file is empty"),
        (b"\xff" * 60, "the file is not UTF-8 text"),
        (b"k" * 60 + b"\0", "the file has a zero byte"),
        (b"k" * 65_537, "the file has more than 65,536 bytes"),
    ],
    ids=["missing", "empty", "blank", "binary", "zero", "large"],
)
def test_a_file_that_cannot_be_used_is_one_problem_and_shows_no_path(
    tmp_path: Path, content: bytes | None, why: str
) -> None:
    path = tmp_path / "hunter2"
    if content is not None:
        path.write_bytes(content)
    without = {name: value for name, value in COMPLETE.items() if name != "SECRET_KEY"}

    assert problems({**without, "SECRET_KEY_FILE": str(path)}) == [
        f"SECRET_KEY_FILE is not the path of a file that can be used: {why}. Correct it."
    ]


def test_a_secret_that_is_set_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("k" * 50)

    assert problems({**COMPLETE, "SECRET_KEY_FILE": str(tmp_path / "key")}) == [
        "SECRET_KEY and SECRET_KEY_FILE are both set. Unset one of them."
    ]
    assert read({**COMPLETE, "SECRET_KEY_FILE": " "}).secret_key == COMPLETE["SECRET_KEY"]
