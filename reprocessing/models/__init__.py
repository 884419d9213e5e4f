"""Django models, one module for each aggregate."""

from reprocessing.models.attempt import Attempt, Claim, ClaimState
from reprocessing.models.audit import Act, Halt, Review, Revision
from reprocessing.models.counters import Flow, FlowDelta, Metric, Tally, TallyDelta
from reprocessing.models.custody import Custody, CustodyState
from reprocessing.models.dlq import DeadLetterQueue, DlqNote, Origin
from reprocessing.models.lane import Lane
from reprocessing.models.letter import DeadLetter, Payload
from reprocessing.models.notification import Incident, Notification, NotificationRoute, Phase
from reprocessing.models.parking_lot import GroupStatus, LetterGroup, Operation, OperationAct, OperationState
from reprocessing.models.report import Report, Reporter
from reprocessing.models.rule import Rule, Rulebook
from reprocessing.models.run import Run, Wave
from reprocessing.models.safety import Breaker, BreakerState, CheckKind, Health, HealthCheck, RateClass
from reprocessing.models.system import Dispatch, Doubt, News, Notice, Pulse, Tide, Word
from reprocessing.models.target import Sighting, Target

__all__ = [
    "Act", "Attempt", "Breaker", "BreakerState", "CheckKind", "Claim", "ClaimState", "Custody", "CustodyState",
    "DeadLetter", "DeadLetterQueue", "Dispatch", "DlqNote", "Doubt", "Flow", "FlowDelta", "GroupStatus", "Halt",
    "Health", "HealthCheck", "Incident", "Lane", "LetterGroup", "Metric", "News", "Notice", "Notification",
    "NotificationRoute", "Operation", "OperationAct", "OperationState", "Origin", "Payload", "Phase", "Pulse",
    "RateClass", "Report", "Reporter", "Review", "Revision", "Rule", "Rulebook", "Run", "Sighting", "Tally",
    "TallyDelta", "Target", "Tide", "Wave", "Word",
]  # fmt: skip
