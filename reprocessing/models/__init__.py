"""What Postgres remembers: rows, constraints and querysets."""

from reprocessing.models.attempt import Attempt
from reprocessing.models.claim import Claim, ClaimState
from reprocessing.models.custody import Custody, CustodyState
from reprocessing.models.dead_letter_queue import DeadLetterQueue, Origin
from reprocessing.models.dispatch import Dispatch
from reprocessing.models.lane import Lane
from reprocessing.models.letter import DeadLetter, Payload
from reprocessing.models.notice import News, Notice
from reprocessing.models.pulse import Pulse
from reprocessing.models.review import Act, Halt, Review
from reprocessing.models.run import Run
from reprocessing.models.target import Sighting, Target

__all__ = [
    "Act",
    "Attempt",
    "Claim",
    "ClaimState",
    "Custody",
    "CustodyState",
    "DeadLetter",
    "DeadLetterQueue",
    "Dispatch",
    "Halt",
    "Lane",
    "News",
    "Notice",
    "Origin",
    "Payload",
    "Pulse",
    "Review",
    "Run",
    "Sighting",
    "Target",
]
