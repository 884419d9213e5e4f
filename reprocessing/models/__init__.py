"""The Django models, with one module for each group of tables that belong together."""

from reprocessing.models.attempt import Attempt, Claim, ClaimState
from reprocessing.models.audit import (
    Approval,
    ApprovalDefault,
    ApprovalState,
    AuditAct,
    AuditEntry,
    Erasure,
    PayloadKey,
    UnapprovedDeed,
)
from reprocessing.models.configuration import ApiCall, ApiToken, ManagedObject, Policy
from reprocessing.models.discovery import DiscoveredQueue, DiscoveredSource, DiscoveryScope, DiscoveryStage
from reprocessing.models.dlq import DeadLetterQueue, Source
from reprocessing.models.dlq_copy import DlqCopy, DlqCopyState
from reprocessing.models.lane import Lane
from reprocessing.models.letter import Letter, Payload, Revision
from reprocessing.models.notification import DlqSample, Incident, Notification, NotificationPhase, NotificationRoute
from reprocessing.models.parking_lot import (
    BulkAction,
    BulkActionKind,
    BulkActionState,
    FailureGroup,
    FailureGroupStatus,
    GroupHour,
)
from reprocessing.models.rule import Rule, Rulebook
from reprocessing.models.run import Run, Wave
from reprocessing.models.safety import (
    Breaker,
    BreakerState,
    CheckKind,
    GlobalStop,
    HealthCheck,
    HealthStatus,
    RateClass,
)
from reprocessing.models.search import SavedFilter, SearchEntry
from reprocessing.models.system import (
    Heartbeat,
    HourlyCount,
    HourlyCountDelta,
    LetterCount,
    LetterCountDelta,
    Metric,
    ParkingEvent,
    ParkingQueueMessage,
    ProviderIdentity,
    RestoreDecision,
    RestoreDoubt,
    TaskHints,
    TickCount,
)
from reprocessing.models.target import Report, Reporter, Target, TargetCheck

__all__ = [
    "ApiCall",
    "ApiToken",
    "Approval",
    "ApprovalDefault",
    "ApprovalState",
    "Attempt",
    "AuditAct",
    "AuditEntry",
    "Breaker",
    "BreakerState",
    "BulkAction",
    "BulkActionKind",
    "BulkActionState",
    "CheckKind",
    "Claim",
    "ClaimState",
    "DeadLetterQueue",
    "DiscoveredQueue",
    "DiscoveredSource",
    "DiscoveryScope",
    "DiscoveryStage",
    "DlqCopy",
    "DlqCopyState",
    "DlqSample",
    "Erasure",
    "FailureGroup",
    "FailureGroupStatus",
    "GlobalStop",
    "GroupHour",
    "HealthCheck",
    "HealthStatus",
    "Heartbeat",
    "HourlyCount",
    "HourlyCountDelta",
    "Incident",
    "Lane",
    "Letter",
    "LetterCount",
    "LetterCountDelta",
    "ManagedObject",
    "Metric",
    "Notification",
    "NotificationPhase",
    "NotificationRoute",
    "ParkingEvent",
    "ParkingQueueMessage",
    "Payload",
    "PayloadKey",
    "Policy",
    "ProviderIdentity",
    "RateClass",
    "Report",
    "Reporter",
    "RestoreDecision",
    "RestoreDoubt",
    "Revision",
    "Rule",
    "Rulebook",
    "Run",
    "SavedFilter",
    "SearchEntry",
    "Source",
    "Target",
    "TargetCheck",
    "TaskHints",
    "TickCount",
    "UnapprovedDeed",
    "Wave",
]  # fmt: skip
