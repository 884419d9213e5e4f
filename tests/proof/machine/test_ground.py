"""The ground leaves what it found."""

from __future__ import annotations

import pytest
from django.db import connection, connections

from tests.proof.machine.ground import Ground

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_connection_of_the_tests_is_their_own_again_after_deaths_on_the_ground() -> None:
    known = connections["default"]
    with Ground().opened() as ground:
        connection.ensure_connection()
        ground.stage.bury()
        connection.ensure_connection()
        other = connections["default"]
    assert (connections["default"] is known, other is known, other.connection) == (True, False, None)
