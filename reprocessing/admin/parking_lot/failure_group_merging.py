"""Merge failure groups, split a merged group, and rename a group: pages that ask for the reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django import forms
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse

from reprocessing.admin.messages.readable_bytes import visible
from reprocessing.admin.site import confirmed_action, visible_rows
from reprocessing.admin.site.confirmed_action import Answer, Done, NotDone, Question, ReasonForm
from reprocessing.domain.parking_lot.failure_fingerprint import LONGEST
from reprocessing.models import FailureGroup
from reprocessing.store.parking_lot import failure_group_pages, merged_groups
from reprocessing.store.parking_lot.failure_group_pages import GroupRow

PERMISSION: Final = "reprocessing.change_failuregroup"
#: Max groups that one page merges or splits.
MOST: Final = 100


def merge(request: HttpRequest) -> HttpResponse:
    """Merge the groups whose ids are in the URL parameters `pick` into one of them, which the person chooses."""
    picked = list(dict.fromkeys(pick for pick in request.GET.getlist("pick") if pick.isascii() and pick.isdecimal()))
    groups = _visible(request, [int(pick[:18]) for pick in picked[:MOST]])
    back = reverse("admin:reprocessing_failuregroup_changelist")
    choices = [(str(group.pk), visible(str(group))) for group in groups]

    class MergeForm(ReasonForm):
        into = forms.ChoiceField(choices=choices, label="Group that stays", widget=forms.RadioSelect)

    def question() -> Question:
        return Question(
            title="Merge failure groups", button="Merge", back=back, about="Failure groups",
            says=(
                f"{len(groups)} groups become one group. New messages of each of them go to it, too.",
                "The group that stays keeps its title, status, note and assignee. You can split it again.",
            ),
            seen=",".join(sorted(picked)), idle=_no_merge(groups),
            begin={"into": str(groups[0].pk)} if groups else {},
        )  # fmt: skip

    def act(given: Mapping[str, Any], by: str) -> Answer:
        if idle := _no_merge(groups):
            return NotDone(idle)
        into = int(given["into"])
        others = [group.pk for group in groups if group.pk != into]
        why = merged_groups.merge_groups(others, into=into, by=by, reason=given["reason"])
        return NotDone(why) if why else Done(_page(into), f"Merged: {len(groups)} groups are one group.")

    return confirmed_action.page(request, permission=PERMISSION, question=question, act=act, form_class=MergeForm)


def split(request: HttpRequest, group: int) -> HttpResponse:
    """Take selected groups out of the group into which they were merged. Each is then a group of its own again."""
    row = _group_or_404(request, group)
    parts = merged_groups.merged_groups(row.id, limit=MOST)
    choices = [(str(part.id), visible(part.title)) for part in parts]

    class SplitForm(ReasonForm):
        parts = forms.MultipleChoiceField(
            choices=choices, label="Groups to split off", widget=forms.CheckboxSelectMultiple
        )

    def question() -> Question:
        return Question(
            title="Split a failure group", button="Split", back=_page(row.id), about=row.title, seen=str(len(parts)),
            says=("Each selected group becomes a group of its own, with its messages. New messages go to it, too.",),
            idle="" if parts else "Nothing is merged into this group.",
            begin={"parts": [value for value, _ in choices]},
        )  # fmt: skip

    def act(given: Mapping[str, Any], by: str) -> Answer:
        n = merged_groups.split_group(row.id, [int(part) for part in given["parts"]], by=by, reason=given["reason"])
        if not n:
            return NotDone("Another person split the group after you opened this page.")
        return Done(_page(row.id), f"Split off: {n} group{'' if n == 1 else 's'}.")

    return confirmed_action.page(request, permission=PERMISSION, question=question, act=act, form_class=SplitForm)


class RenameForm(ReasonForm):
    """A form that asks for the new title. A new title may not have control characters or line ends."""

    name = forms.CharField(
        label="Title", required=False, max_length=LONGEST,
        help_text="Empty: the title that the service found. Do not write message contents: everybody sees the title.",
    )  # fmt: skip

    def clean_name(self) -> str:
        """Return the new title. Refuse a title with invisible characters."""
        name: str = self.cleaned_data["name"]
        if not name.isprintable():
            raise forms.ValidationError("The title has control characters. Write it in one line, without them.")
        return name


def rename(request: HttpRequest, group: int) -> HttpResponse:
    """Give a group another title."""
    row = _group_or_404(request, group)

    def question() -> Question:
        return Question(
            title="Rename a failure group", button="Rename", back=_page(row.id), about=row.title, seen=f"-{row.name}",
            says=(), facts=(("Title that the service found", row.found_title),), begin={"name": row.title},
        )  # fmt: skip

    def act(given: Mapping[str, Any], by: str) -> Answer:
        name = "" if given["name"] == row.found_title else given["name"]
        seen = given["seen"].removeprefix("-")
        if not merged_groups.rename_group(row.id, name, seen=seen, by=by, reason=given["reason"]):
            return NotDone(f"Another person renamed the group after you opened this page. Its title is {row.title}.")
        return Done(_page(row.id), "Renamed.")

    return confirmed_action.page(request, permission=PERMISSION, question=question, act=act, form_class=RenameForm)


def _visible(request: HttpRequest, ids: Sequence[int]) -> list[FailureGroup]:
    """Return the groups with these ids; the group with the latest message comes first.

    Raises:
        Http404: a group does not exist, or belongs to a DLQ that this person does not see.
    """
    if not request.user.has_perm(PERMISSION):
        return []  # for this person, the page is refused
    found = list(visible_rows.rows(request, FailureGroup.objects).filter(pk__in=ids).order_by("-last_at", "-pk"))
    if len(found) < len(ids):
        raise Http404
    return found


def _group_or_404(request: HttpRequest, group: int) -> GroupRow:
    found = failure_group_pages.find_group(group, seen=visible_rows.of(request)) if group < 2**63 else None
    if found is None:
        raise Http404
    return found


def _no_merge(groups: Sequence[FailureGroup]) -> str:
    if len(groups) < 2:  # noqa: PLR2004  a merge needs two
        return "Select two or more groups in the list, then merge them."
    if len({group.dlq_id for group in groups}) > 1:
        return "The groups belong to several DLQs. Filter the list by DLQ, and select groups of one DLQ."
    return ""


def _page(group: int) -> str:
    return reverse("admin:reprocessing_failuregroup_change", args=[group])
