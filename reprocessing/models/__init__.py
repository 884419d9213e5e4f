"""What Postgres remembers: rows, constraints and querysets."""

from reprocessing.models.attempt import Attempt
from reprocessing.models.breaker import Breaker, BreakerState, RateClass
from reprocessing.models.claim import Claim, ClaimState
from reprocessing.models.custody import Custody, CustodyState
from reprocessing.models.dead_letter_queue import DeadLetterQueue, Origin
from reprocessing.models.dispatch import Dispatch
from reprocessing.models.dlq_note import DlqNote
from reprocessing.models.doubt import Doubt, Word
from reprocessing.models.group import GroupStatus, LetterGroup
from reprocessing.models.health import CheckKind, Health, HealthCheck
from reprocessing.models.lane import Lane
from reprocessing.models.letter import DeadLetter, Payload
from reprocessing.models.metric import Metric
from reprocessing.models.notice import News, Notice
from reprocessing.models.notification import Incident, Notification, NotificationRoute, Phase
from reprocessing.models.operation import Operation, OperationAct, OperationState
from reprocessing.models.pulse import Pulse
from reprocessing.models.report import Report, Reporter
from reprocessing.models.review import Act, Halt, Review
from reprocessing.models.revision import Revision
from reprocessing.models.rule import Rule, Rulebook
from reprocessing.models.run import Run
from reprocessing.models.tally import Flow, FlowDelta, Tally, TallyDelta
from reprocessing.models.target import Sighting, Target
from reprocessing.models.tide import Tide
from reprocessing.models.wave import Wave

__all__ = [
    "Act",
    "Attempt",
    "Breaker",
    "BreakerState",
    "CheckKind",
    "Claim",
    "ClaimState",
    "Custody",
    "CustodyState",
    "DeadLetter",
    "DeadLetterQueue",
    "Dispatch",
    "DlqNote",
    "Doubt",
    "Flow",
    "FlowDelta",
    "GroupStatus",
    "Halt",
    "Health",
    "HealthCheck",
    "Incident",
    "Lane",
    "LetterGroup",
    "Metric",
    "News",
    "Notice",
    "Notification",
    "NotificationRoute",
    "Operation",
    "OperationAct",
    "OperationState",
    "Origin",
    "Payload",
    "Phase",
    "Pulse",
    "RateClass",
    "Report",
    "Reporter",
    "Review",
    "Revision",
    "Rule",
    "Rulebook",
    "Run",
    "Sighting",
    "Tally",
    "TallyDelta",
    "Target",
    "Tide",
    "Wave",
    "Word",
]
