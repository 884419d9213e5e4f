"""Look whether what letters point to is still there: a consumer fails on a pointer whose object is gone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from reprocessing.domain.message import s3_pointer
from reprocessing.domain.message.envelope import unpack
from reprocessing.gateways.aws_services import are_gone
from reprocessing.models import Run
from reprocessing.store.parking_lot import s3_bodies

#: Letters of a run among which pointers are looked for, and pointers that S3 is asked about.
AMONG: Final = 20_000
MOST: Final = 500


@dataclass(frozen=True, slots=True)
class Verified:
    """What was found. `asked`: pointers that S3 was asked about; `gone`: message ids of those whose object is gone."""

    asked: int
    gone: list[str]


def pointers(run: Run) -> Verified:
    """Of a run's first letters those whose body in S3 is gone. What S3 did not say counts as there."""
    found = {
        one.message_id: there
        for one in s3_bodies.pointing(run.pk, among=AMONG, most=MOST)
        if (there := s3_pointer.read(bytes(one.body), unpack(bytes(one.attributes)))) is not None
    }
    if not found:
        return Verified(0, [])
    gone = are_gone(set(found.values()), run.dlq.region, run.dlq.role_arn)
    return Verified(len(found), [message_id for message_id, there in found.items() if there in gone])
