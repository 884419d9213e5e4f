"""Print the list of commands for `manage.py help`: this project's commands by purpose, then Django's commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from django.core.management import ManagementUtility, get_commands, load_command_class
from django.core.management.base import BaseCommand

from reprocessing.management.command_line import DOCUMENTED, as_invoked

GROUPS: Final = {
    "Queues": ("add_dlq", "discover_dlqs", "redrive_status", "peek_dlq", "remove_source"),
    "Configuration": ("export_config", "apply_config"),
    "Runs": ("drain_dlq", "show_runs", "rerun", "pause_run", "resume_run", "abort_run"),
    "Parking lot": ("release_parked", "discard_parked", "restore_discarded", "edit_messages"),
    "Approvals": ("list_approvals", "approve", "decline", "break_glass", "require_approvals"),
    "Payloads": ("rotate_payload_keys", "shred_payloads", "erase"),
    "Safety": ("stop_redrive", "resume_redrive", "check_health", "reset_breaker"),
    "Routing and targets": (
        "add_target", "add_rule", "list_rules", "test_rules", "enable_rule", "disable_rule", "remove_rule",
        "add_rate_class", "add_reporter", "list_reporters", "revoke_reporter",
    ),
    "HTTP API": ("make_api_token", "list_api_tokens", "revoke_api_token"),
    "AWS": ("provision_queues", "iam_policy", "put_alarms", "native_redrive"),
    "Notifications": ("set_notification", "test_notification", "list_notifications", "remove_notification"),
    "Maintenance": ("redrive_doctor", "check_pulse", "after_restore", "make_roles", "purge_idempotency"),
    "Servers": ("serve", "deployment_files", "sandbox"),
}  # fmt: skip
#: Commands whose Django application (the value) is installed only while the command runs.
_ELSEWHERE: Final = {"sandbox": "redrive_service.sandbox"}
_WIDTH: Final = max(len(name) for names in GROUPS.values() for name in names)


class Utility(ManagementUtility):
    """Django's command line with a grouped list of commands."""

    def main_help_text(self, commands_only: bool = False) -> str:  # noqa: FBT001, FBT002  # Django's signature
        """Return the grouped list of commands or, if `commands_only`, Django's plain list for shell completion."""
        if commands_only:
            return super().main_help_text(commands_only=True)
        begin = as_invoked(f"Type '{DOCUMENTED} help COMMAND' for the options and examples of a command.")
        return "\n".join([begin, *_own_commands(), *_django_commands()])


def _own_commands() -> Iterator[str]:
    apps = get_commands() | _ELSEWHERE
    for title, names in GROUPS.items():
        yield f"\n{title}"
        for name in names:
            yield f"  {name:{_WIDTH}}  {one_line(load_command_class(apps[name], name))}"


def _django_commands() -> Iterator[str]:
    ours = {name for names in GROUPS.values() for name in names}
    yield "\nDjango and its applications"
    yield "  " + "\n  ".join(sorted(get_commands().keys() - ours))


def one_line(command: BaseCommand) -> str:
    """Return the first sentence of the command's help, without its full stop."""
    return command.help.partition("\n")[0].partition(". ")[0].rstrip(".")
