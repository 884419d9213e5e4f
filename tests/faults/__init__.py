"""Faults in real processes: what dies, what is left, and who mends it."""

from typing import Final

import pytest

#: Of tests that take a minute and the whole machine.
LONG: Final = [pytest.mark.django_db(transaction=True), pytest.mark.soak, pytest.mark.alone, pytest.mark.long]
