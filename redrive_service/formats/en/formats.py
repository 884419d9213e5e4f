"""Formats of dates and times, with seconds and UTC, because people compare the times of an incident with logs."""

from __future__ import annotations

DATE_FORMAT = "Y-m-d"
DATETIME_FORMAT = r"Y-m-d H:i:s \U\T\C"
TIME_FORMAT = r"H:i:s \U\T\C"
SHORT_DATE_FORMAT = DATE_FORMAT
SHORT_DATETIME_FORMAT = DATETIME_FORMAT
