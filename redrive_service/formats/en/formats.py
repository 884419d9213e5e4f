"""Date and time formats with seconds, as in a log: people in several time zones compare times of an incident."""

from __future__ import annotations

DATE_FORMAT = "Y-m-d"
DATETIME_FORMAT = r"Y-m-d H:i:s \U\T\C"
TIME_FORMAT = r"H:i:s \U\T\C"
SHORT_DATE_FORMAT = DATE_FORMAT
SHORT_DATETIME_FORMAT = DATETIME_FORMAT
