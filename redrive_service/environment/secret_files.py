"""Read secrets from files. For example, `SECRET_KEY_FILE` names a file that contains the value of `SECRET_KEY`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from redrive_service.notifications import PREFIX

SUFFIX: Final = "_FILE"
SECRETS: Final = (
    "SECRET_KEY", "DATABASE_URL", "REDIS_URL", "REDRIVE_SECRETS", "REDRIVE_METRICS_TOKEN", "REDRIVE_PAYLOAD_KEYS",
)  # fmt: skip
#: A secret that environment/oidc.py reads from its variable or file, instead of this module.
_READ_ELSEWHERE: Final = "REDRIVE_OIDC_CLIENT_SECRET"
#: All secrets except the URLs of notification destinations. Each may also be in a file.
READ_FROM_FILES: Final = (*SECRETS, _READ_ELSEWHERE)
_LARGEST: Final = 65_536  # max bytes of a secret file


def is_secret(name: str) -> bool:
    """Return whether the variable of this name contains a secret, such as the URL of a notification destination."""
    return name in READ_FROM_FILES or (name.startswith(PREFIX) and name != PREFIX)


def secret_of(variable: str) -> str | None:
    """Return the name of the secret that belongs to the variable, or None if the variable has nothing to do with one.

    `SECRET_KEY`, which contains a secret, and `SECRET_KEY_FILE`, which names its file, both give `SECRET_KEY`.
    """
    name = variable.removesuffix(SUFFIX)
    if is_secret(name):
        return name
    return variable if is_secret(variable) else None


def read_secret_files(variables: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return all variables, with secrets read from files, and a problem for each file that cannot be used.

    Problems are by the secret's name. Their texts do not show the path, because somebody may have put the secret itself
    where the path belongs.
    """
    values, problems = dict(variables), dict[str, str]()
    for variable, path in sorted(variables.items()):
        name = variable.removesuffix(SUFFIX)
        if not variable.endswith(SUFFIX) or not is_secret(name) or name == _READ_ELSEWHERE or not path.strip():
            continue
        del values[variable]
        if variables.get(name, "").strip():
            problems[name] = f"{name} and {variable} are both set. Unset one of them."
            continue
        try:
            values[name] = _content(Path(path.strip()))
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            problems[name] = f"{variable} is not the path of a file that can be used: {why}. Correct it."
    return values, problems


def _content(path: Path) -> str:
    with path.open("rb") as file:
        content = file.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise ValueError(f"the file has more than {_LARGEST:,} bytes")
    if not content.strip():
        raise ValueError("the file is empty")
    if b"\0" in content:
        raise ValueError("the file has a zero byte")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise ValueError("the file is not UTF-8 text") from None
