"""What a log format writes."""

from __future__ import annotations

import io
import json
import logging
from typing import Any

from redrive_service.telemetry.log_format import formatter


class Written(logging.StreamHandler[io.StringIO]):
    """The lines that a format makes of records."""

    def __init__(self, log_format: str) -> None:
        super().__init__(io.StringIO())
        self.setFormatter(formatter(log_format, "%(levelname)s %(name)s %(message)s"))

    @property
    def text(self) -> str:
        return self.stream.getvalue()

    @property
    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.split("\n")[:-1]]
