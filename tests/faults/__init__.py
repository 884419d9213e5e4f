"""Faults in real processes: what dies, what is left, and who mends it."""

from typing import Final

import pytest

#: Of tests that take a minute. Those that also want the machine to themselves add pytest.mark.alone.
LONG: Final = [pytest.mark.django_db(transaction=True), pytest.mark.soak, pytest.mark.long]
