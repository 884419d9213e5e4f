"""Canaries of which nothing is heard, and those that a person outweighs."""

from __future__ import annotations

from typing import Final

from tests.proof.planted.bug import Bug

_INTENT: Final = "reprocessing/models/intent.py"
_OF_BRAKES: Final = "tests/race/test_brakes.py"
_OF_BREAKERS: Final = "tests/reprocessing/models/test_breakers.py"

BUGS: Final = (
    Bug(
        name="nobody-leases-behind-a-lost-canary",
        breaks="Recovery without a person: a canary of which nothing is heard keeps its place for ever.",
        file="reprocessing/models/brakes.py",
        old="(b.state = 'half_open' AND b.canary_until > redrive_now())\n    OR b.target_id",
        new="(b.state = 'half_open' AND b.canary_until IS NOT NULL)\n    OR b.target_id",
        caught_by=f"{_OF_BRAKES}::test_a_canary_of_which_nothing_is_ever_heard_gives_up_its_place_in_time",
    ),
    Bug(
        name="nothing-is-intended-behind-a-lost-canary",
        breaks="Recovery without a person: likewise, no intent is committed any more.",
        file=_INTENT,
        old="(b.canary_until IS NULL OR b.canary_until <= redrive_now()))\n), rooms",
        new="b.canary_until IS NULL)\n), rooms",
        caught_by=f"{_OF_BRAKES}::test_a_canary_of_which_nothing_is_ever_heard_gives_up_its_place_in_time",
    ),
    Bug(
        name="no-canary-goes-behind-a-lost-one",
        breaks="Recovery without a person: likewise, no letter becomes the next canary.",
        file=_INTENT,
        old="(b.canary_until IS NULL OR b.canary_until <= redrive_now())))\n    RETURNING",
        new="b.canary_until IS NULL))\n    RETURNING",
        caught_by=f"{_OF_BRAKES}::test_a_canary_of_which_nothing_is_ever_heard_gives_up_its_place_in_time",
    ),
    Bug(
        name="a-person-s-reset-keeps-the-epoch",
        breaks="A person decides: the late failure of a canary opens what was closed, or half opened, over it.",
        file="reprocessing/models/resets.py",
        old="SET state = %(state)b::text, epoch = b.epoch + 1, since = k.now",
        new="SET state = %(state)b::text, since = k.now",
        caught_by=f"{_OF_BREAKERS}::test_the_late_failure_of_a_canary_moves_no_breaker_that_a_person_has_reset",
    ),
    Bug(
        name="a-canary-s-failure-outweighs-a-person",
        breaks="A person decides: a canary that failed shortens the rest for which a person opened the breaker.",
        file="reprocessing/models/breakers.py",
        old=" WHERE b.id = m.id AND b.state = m.was AND b.epoch = m.epoch\n",
        new=" WHERE b.id = m.id\n",
        caught_by=f"{_OF_BREAKERS}::test_a_canary_that_failed_opens_nothing_that_a_person_resets_meanwhile[open]",
    ),
)
