"""Every action of a person passes the guard, or is listed with the reason why not. An action not listed fails."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import get_commands

from reprocessing.admin.parking_lot.decision import DecisionKind
from reprocessing.domain.approvals.requested_action import ActionKind, permissions_for
from reprocessing.models.parking_lot import BulkActionKind
from reprocessing.pipeline.runs.run_actions import RUN_ACTIONS
from reprocessing.store.parking_lot import bulk_actions
from tests.reprocessing.admin.site import test_matrix

APP = Path(__file__).parents[4] / "reprocessing"

#: Functions that execute an action, by the function that holds their call of the guard. No other function may call it.
GUARDED = {
    "pipeline/parking_lot/act_on_parked.py": {"_review", "check_whole"},
    "pipeline/parking_lot/edit.py": {"edit_letter"},
    "pipeline/aws/native_redrive.py": {"start"},
    "pipeline/payloads/erase.py": {"erase"},
    "pipeline/payloads/shred.py": {"shred_messages", "_destroy"},
    "store/parking_lot/bulk_actions.py": {"_check_approval"},
    "store/runs/run_transitions.py": {"_check_approval"},
    "store/routing/rule_changes.py": {"_check_approval"},
    "store/dlqs/registration.py": {"write", "lift"},
    "pipeline/configuration/apply.py": {"apply", "apply_approved"},
    "store/approvals/default_limit.py": {"_set"},
}
#: Statements that change messages, runs or rules for a person, and the only functions that may use them.
BEHIND_THE_GUARD = {
    "discard_letters": {"pipeline/parking_lot/act_on_parked.py", "store/payloads/removal.py"},
    "remove_content": {"pipeline/payloads/shred.py", "store/payloads/erasure.py"},
    "erase_letters": {"pipeline/payloads/erase.py"},
    "release_letters": {"pipeline/parking_lot/act_on_parked.py"},
    "restore_letters": {"pipeline/parking_lot/act_on_parked.py"},
    "add_revisions": {"pipeline/parking_lot/edit.py", "pipeline/parking_lot/edit_messages.py"},
    "hand_to_aws": {"pipeline/aws/native_redrive.py"},
    "move_run": {"store/runs/run_transitions.py"},
}
#: How rows are made that change messages for a person, and the only files that may make them.
MADE_BY = {
    r"INSERT INTO redrive_bulk_action\b|\bBulkAction\.objects\.\w*create": {"store/parking_lot/bulk_actions.py"},
    r"INSERT INTO redrive_rule\b|\bRule\(name=|\bRule\.objects\.\w*create": {"store/routing/rule_changes.py"},
}

#: What a command does, for a person: the guard checks it.
NEEDS = {
    "drain_dlq", "rerun", "resume_run", "release_parked", "discard_parked", "restore_discarded", "add_rule",
    "enable_rule", "disable_rule", "remove_rule", "add_dlq", "apply_config", "native_redrive", "require_approvals",
    "erase", "shred_payloads", "edit_messages",
    "discover_dlqs",  # adopts DLQs as add_dlq does
}  # fmt: skip
#: Decide about actions.
DECIDES = {"approve", "decline", "break_glass", "list_approvals"}
#: No run, discard, edit or change of a rule: they stop, show, configure, or prepare.
FREE = {
    "abort_run", "add_rate_class", "add_reporter", "add_target", "after_restore", "check_health", "check_pulse",
    "export_config", "iam_policy", "list_api_tokens", "list_notifications", "list_reporters", "list_rules",
    "make_api_token", "make_roles", "pause_run", "rotate_payload_keys",
    "peek_dlq", "provision_queues", "put_alarms", "redrive_doctor", "redrive_status", "remove_notification",
    "remove_source", "reset_breaker", "resume_redrive", "revoke_api_token", "revoke_reporter",
    "set_notification", "show_runs",
    "stop_redrive", "test_notification", "test_rules",
}  # fmt: skip

#: The same for the actions of the admin, by the end of their address.
ADMIN_NEEDS = {
    "parkedletter/release", "parkedletter/discard", "parkedletter/restore",
    "parkedletter/{letter}/edit", "parkedletter/edit-all",
    "rule/add/", "rule/{rule}/edit", "rule/{rule}/remove", "rule/{rule}/enable", "rule/{rule}/disable",
    "run/{run}/start/now", "run/{run}/resume/now", "deadletterqueue/{dlq}/examine",
}  # fmt: skip
ADMIN_DECIDES = {f"approval/{{approval}}/{action}" for action in ("approve", "decline", "alone", "difference")}
ADMIN_FREE = {
    "parkedletter/assign", "parkedletter/note", "parkedletter/export", "bulkaction/{operation}/abort",
    *(f"{desk}/{{letter}}/{action}" for desk in ("letter", "parkedletter") for action in test_matrix._SHOWING),
    "parkedletter/group-by",
    "failuregroup/{group}/change/", "failuregroup/{group}/rename", "failuregroup/{group}/split", "failuregroup/merge",
    "run/add/", "deadletterqueue/add/", "notificationroute/add/", "target/add/",
    "notificationroute/{route}/edit", "notificationroute/{route}/remove", "target/{target}/edit",
    "managedobject/{mark}/unlock", "deadletterqueue/{dlq}/stop", "deadletterqueue/{dlq}/resume", "lane/{lane}/stop",
    "lane/{lane}/resume", "breaker/{breaker}/close/now", "breaker/{breaker}/open/now",
    "apitoken/add/", "apitoken/{api_token}/revoke", "breaker/{breaker}/half-open/now", "run/{run}/pause/now",
    "run/{run}/abort/now", "run/{run}/choose", "parkedletter/save", "parkedletter/unsave",
}  # fmt: skip


def _functions(path: Path) -> Iterator[tuple[str, str]]:
    """Yield each function of a file, with its text."""
    text = path.read_text(encoding="utf-8")
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, ast.get_source_segment(text, node) or ""


_CALLS = ("guard.check(", "guard.refuse_unseen(", "guard.refuse_above", "raise ApprovalNeeded")


@pytest.mark.soak
def test_the_guard_is_called_by_exactly_these_functions() -> None:
    found: dict[str, set[str]] = {}
    for path in [*APP.glob("store/**/*.py"), *APP.glob("pipeline/**/*.py"), *APP.glob("admin/**/*.py")]:
        for name, text in _functions(path):
            if any(call in text for call in _CALLS):
                found.setdefault(str(path.relative_to(APP)), set()).add(name)
    assert found.pop("store/approvals/guard.py") == {"check"}
    assert found == GUARDED


def test_what_changes_messages_for_a_person_is_reached_only_behind_the_guard() -> None:
    found: dict[str, set[str]] = {name: set() for name in BEHIND_THE_GUARD}
    for path in APP.glob("**/*.py"):
        text = path.read_text(encoding="utf-8")
        for name in BEHIND_THE_GUARD:
            if f"{name}(" in text.replace(f"def {name}(", "") or f".{name}," in text or f"{name}\n" in text:
                found[name].add(str(path.relative_to(APP)))
    assert found == BEHIND_THE_GUARD


def test_bulk_actions_and_rules_are_made_in_one_place() -> None:
    found: dict[str, set[str]] = {made: set() for made in MADE_BY}
    for path in APP.glob("**/*.py"):
        text = path.read_text(encoding="utf-8")
        for made in MADE_BY:
            if re.search(made, text):
                found[made].add(str(path.relative_to(APP)))
    assert found == MADE_BY


def test_each_command_is_classified() -> None:
    ours = {name for name, app in get_commands().items() if app == "reprocessing"}
    assert ours == NEEDS | DECIDES | FREE
    assert not NEEDS & FREE


def test_each_action_of_the_admin_is_classified() -> None:
    here = "/admin/reprocessing/"
    ours = {address.removeprefix(here) for address in test_matrix.ACTIONS if address.startswith(here)}
    assert ours == ADMIN_NEEDS | ADMIN_DECIDES | ADMIN_FREE
    others = {address for address in test_matrix.ACTIONS if not address.startswith(here)}
    users = {"/admin/auth/user/add/", "/admin/django_celery_beat/periodictask/add/"}
    assert others == {"/admin/stop", "/admin/resume", *users}


def test_each_kind_of_decision_bulk_action_and_run_action_is_classified() -> None:
    needs = {kind.value for kind in DecisionKind if kind.needs_approval}
    assert needs == {"release", "discard", "restore"}
    assert {kind.value for kind, action in bulk_actions._ACTIONS.items() if action} == needs | {"edit"}
    assert set(bulk_actions._ACTIONS) == set(BulkActionKind)
    assert set(RUN_ACTIONS) == {"start", "resume", "pause", "abort"}
    assert {name for kind in ActionKind for name in permissions_for(kind, {})} <= {
        f"reprocessing.{name}"
        for name in (
            "release_parkedletter", "discard_parkedletter", "edit_parkedletter", "operate_run", "change_rule",
            "delete_rule", "change_deadletterqueue", "change_target", "change_notificationroute",
        )
    }  # fmt: skip
