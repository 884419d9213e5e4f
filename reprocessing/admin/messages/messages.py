"""The list of messages in all states, and the page of a message, which shows its payload on request."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from datetime import timedelta
from functools import partial
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.db import models
from django.db.models import F, OuterRef, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.text import capfirst

from reprocessing.admin.messages import (
    compare_page,
    delivery_status_panel,
    listed_messages,
    message_actions,
    message_page,
    show_payload,
)
from reprocessing.admin.messages.compare_page import NoSuchMessage, NothingToCompare
from reprocessing.admin.messages.listed_messages import FilteredMessages, MessageList, Neighbours
from reprocessing.admin.messages.readable_bytes import NOT_IN_SQS, duration, readable, short_key, visible
from reprocessing.admin.messages.uncounted_attempts import attempts_of, attempts_on_page
from reprocessing.admin.parking_lot.decision import DecisionKind, pack_messages
from reprocessing.admin.search import list_search, saved_filter_pages
from reprocessing.admin.search.state_filter import StateFilter
from reprocessing.admin.site import labels, visible_rows
from reprocessing.admin.site.readonly_admin import Page, ReadOnlyAdmin
from reprocessing.admin.site.session_end import post_only
from reprocessing.domain.errors import PayloadUnreadable
from reprocessing.models import DlqCopy, Letter
from reprocessing.pipeline.parking_lot import read_s3_body
from reprocessing.pipeline.parking_lot.read_s3_body import NotRead
from reprocessing.store.payloads import message_types
from reprocessing.store.payloads.viewed_content import ViewedContent

# The state of the copy of a message in the DLQ. The list shows the time left in SQS only if SQS still has the copy.
# With EXISTS instead of this subquery, PostgreSQL would read the copies of all messages, not only of the page.
_COPY = models.Subquery(
    DlqCopy.objects.filter(dlq=OuterRef("dlq"), message_id=OuterRef("message_id")).values("state")[:1]
)
_NOW = models.Func(function="redrive_now", output_field=models.DateTimeField())
_LEFT = models.ExpressionWrapper(F("expires_at") - _NOW, output_field=models.DurationField())
_LONGEST_NUMBER = 9  # max digits of an id
_DECISIONS = (DecisionKind.RELEASE, DecisionKind.DISCARD, DecisionKind.RESTORE)  # the parking lot's pages offer all
_RELATED = ("dlq", "source__target", "target", "lane", "run", "rule", "rate_class", "group__merged_into")


class MessagesAdmin(ReadOnlyAdmin):
    """The list and the pages of messages. Only a message's page shows its body, to people who may see payloads."""

    change_list_template = "reprocessing/admin/message_list.html"
    list_display: tuple[str, ...] = (
        "message_id", "dlq", "type", "state_text", "key", "age", "tries", "time_left", "captured_at",
    )  # fmt: skip
    list_filter: ClassVar[tuple[str, ...]] = ("dlq", "state")
    link_filters = ("presumed", "group", "run", "rule", "lane")
    preserve_filters = False  # `url_for_result` adds the filter to links instead
    list_select_related = ("dlq", "group")
    ordering: ClassVar[tuple[str, ...]] = ("-id",)
    sortable_by: ClassVar[tuple[str, ...]] = ()
    search_fields = ("message_id",)
    search_help_text = "A full message id, redrive id, ordering key or value of a search field; or field:value."

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the list, and above it the saved filters and the form that saves the list's filter."""
        saved = saved_filter_pages.list_section_values(request) if self.has_view_permission(request) else {}
        return super().changelist_view(request, saved | (extra_context or {}))

    def get_changelist(self, request: HttpRequest, **options: Any) -> type[ChangeList]:  # noqa: ANN401  Django's own
        """Return the class of the list, which reads the number of messages from stored counters."""
        return MessageList

    def get_queryset(self, request: HttpRequest) -> QuerySet[Letter]:
        """Return the messages, each with its age and the time until SQS deletes its copy, by PostgreSQL's clock."""
        letters: QuerySet[Letter] = super().get_queryset(request)
        return letters.alias(_copy=_COPY).annotate(
            _age=models.ExpressionWrapper(_NOW - F("first_sent_at"), output_field=models.DurationField()),
            _left=models.Case(models.When(Q(_copy="held"), then=_LEFT), output_field=models.DurationField()),
        )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Letter], search_term: str
    ) -> tuple[QuerySet[Letter], bool]:
        """Return the newest messages that the search finds. The search text is written as on the search page.

        The second value that is returned is False, which tells Django that no message occurs twice.
        """
        text = search_term.strip()
        return (queryset.filter(pk__in=list_search.newest_ids(request, text)) if text else queryset), False

    def get_list_filter(self, request: HttpRequest) -> list[Any]:
        """Return the filters of the list. The filter by state shows states with the names that people know."""
        return [("state", StateFilter) if name == "state" else name for name in super().get_list_filter(request)]

    @admin.display(description="state")
    def state_text(self, letter: Letter) -> str:
        """Return the name of the message's state, such as "presumed delivered"."""
        return labels.state(letter.state, letter.presumed)

    @admin.display(description="ordering key", empty_value="none")
    def key(self, letter: Letter) -> str | None:
        """Return the ordering key, shortened to 60 characters; None: the message has none."""
        return letter.ordering_key and short_key(letter.ordering_key)

    @admin.display(description="age", ordering="first_sent_at")
    def age(self, letter: Letter) -> str:
        """Return how long ago the message was first sent to its source queue."""
        return duration(_annotated(letter, "_age"))

    @admin.display(description="left in SQS", ordering="expires_at")
    def time_left(self, letter: Letter) -> str:
        """Return how much longer SQS keeps the copy of the message in the DLQ. PostgreSQL keeps the message longer."""
        left = _annotated(letter, "_left")
        return NOT_IN_SQS if left is None else duration(left)

    @admin.display(description="type", empty_value="-")
    def type(self, letter: Letter) -> str | None:
        """Return the message type or Celery task, such as order.paid; None: the title of its failure group has none."""
        return visible(message_types.type_of_group(letter)) or None

    @admin.display(description="attempts", ordering="attempts")
    def tries(self, letter: Letter) -> str:
        """Return how many attempts a message had, how many are allowed, and how many do not count."""
        return attempts_of(letter)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the page of a message, without its payload."""
        if request.method not in {"GET", "HEAD"}:
            raise PermissionDenied  # Django's own form must not write
        return self._shown(request, object_id, extra_context or {})

    def page_context(self, request: HttpRequest, letter: Letter) -> dict[str, Any]:
        """Return template values: actions for a parked or discarded message (`actions`), a hidden field (`letters`).

        For messages in other states, the result is empty.
        """
        offered = [decision for decision in _DECISIONS if decision.state == letter.state]
        if not offered:
            return {}
        actions = [action_of(request, decision) for decision in offered]
        return {"actions": actions, "letters": pack_messages([letter])}

    def pages(self) -> Iterable[Page]:
        """Return the pages that show, download or compare a payload. The audit log records each view."""
        views = {"reveal": self._reveal, "body": self._body, "compare": self._compare, "s3": self._s3}
        return ((f"<int:letter>/{name}", post_only(view), name, {}) for name, view in views.items())

    def _shown(
        self, request: HttpRequest, object_id: str, more: dict[str, Any], shown: ViewedContent | None = None
    ) -> HttpResponse:
        letter = self._with_all(request, object_id)
        if not self.has_view_permission(request, letter):
            raise PermissionDenied
        if letter is None:
            raise Http404
        context = self.admin_site.each_context(request) | {
            "title": message_page.title(letter, request.user), "original": letter, "opts": self.opts,
            "position": listed_messages.position(
                request, str(self.opts.model_name), partial(self.neighbours, request, letter)
            ),
            "age": self.age(letter), "time_left": self.time_left(letter), "key": self.key(letter),
            "tries": attempts_on_page(letter), "listed_tries": attempts_of(letter),
            **{f"{page}_url": f"admin:{self._name(page)}" for page in ("reveal", "body", "compare", "s3")},
        }  # fmt: skip
        found = letter.duplicate_of_id and visible_rows.rows(request, Letter.objects).filter(pk=letter.duplicate_of_id)
        context["duplicate_of"] = found.first() if found else None
        context |= message_page.page(letter, request.user, shown, revealed=bool(more.get("reveals"))) | {
            "reveal": self._reveal_form(request)
        }
        context |= delivery_status_panel.panel(
            letter, request.user, shown=shown is not None, revealed=bool(more.get("reveals"))
        )
        waits = context["lane_panel"]["why"] if context["lane_panel"] else ""
        context["sentence"] = message_actions.state_text(letter, waits, context["known"])
        context["is_outcome_told"] = context["sentence"].startswith(visible(context["known"].sentence))
        context["next_action"] = message_actions.next_action(letter, request)
        context |= message_actions.page_buttons(letter, request) | self.page_context(request, letter) | more
        context["actions"] = message_actions.action_buttons(context.get("actions", ()))
        return TemplateResponse(request, "reprocessing/admin/message.html", context)

    def neighbours(self, request: HttpRequest, letter: Letter, query: QueryDict) -> Neighbours:
        """Return the ids of the previous and the next message in the list with this query (None: no such message).

        If the query is not valid, the errors of Django's lists are raised.
        """
        asked = copy(request)
        asked.GET = query  # type: ignore[assignment]  # as Django's own views do
        listed = FilteredMessages(
            asked, self.model, self.get_list_display(asked), None, self.get_list_filter(asked), None,
            self.get_search_fields(asked), self.list_select_related, self.list_per_page, 0, (), self, (), "",
        )  # fmt: skip
        return listed.neighbours(letter)

    def _with_all(self, request: HttpRequest, object_id: str) -> Letter | None:
        if not (object_id.isdecimal() and len(object_id) <= 2 * _LONGEST_NUMBER):
            return None
        return self.get_queryset(request).select_related(*_RELATED).filter(pk=object_id).first()

    def _reveal(self, request: HttpRequest, letter: int) -> HttpResponse:
        """Record the view in the audit log, then show the message with its payload."""
        found = self._revealed(request, letter)
        try:
            shown = show_payload.payload_to_send(found, request, show_payload.LOOKED)
        except PayloadUnreadable as error:
            return self._back(request, found, str(error))
        more = {"nothing_kept": shown is None, "reveals": show_payload.reveal_reason(request)}
        return self._shown(request, str(letter), more, shown)

    def _body(self, request: HttpRequest, letter: int) -> HttpResponse:
        """Return the body as a download, so that the browser neither displays nor runs it."""
        found = self._revealed(request, letter)
        fetch = show_payload.captured_payload if request.POST.get("of") == "captured" else show_payload.payload_to_send
        try:
            held = fetch(found, request, show_payload.FETCHED)
        except PayloadUnreadable as error:
            return self._back(request, found, str(error))
        if held is None:
            return self._back(request, found, "The payload was deleted.")
        return HttpResponse(
            held.body,
            content_type="application/octet-stream",
            headers={"Content-Disposition": f'attachment; filename="{found.public_id}.body"'},
        )

    def _s3(self, request: HttpRequest, letter: int) -> HttpResponse:
        """Show the page of a message with its payload, and with the body that its producer stored in S3."""
        found, reason = self._revealed(request, letter), show_payload.reveal_reason(request)
        by = request.user.get_username()
        try:
            shown = show_payload.payload_to_send(found, request, show_payload.LOOKED)
            read = read_s3_body.read_s3_body(found, by=by, why=reason or show_payload.FROM_S3, revealed=bool(reason))
        except PayloadUnreadable as error:
            return self._back(request, found, str(error))
        if isinstance(read, NotRead):
            return self._shown(request, str(letter), {"reveals": reason, "s3_problem": visible(read.why)}, shown)
        more = {"reveals": reason, "s3_body": readable(read.body), "s3_is_masked": read.is_masked}
        return self._shown(request, str(letter), more, shown)

    def _compare(self, request: HttpRequest, letter: int) -> HttpResponse:
        found = self._revealed(request, letter)
        try:
            return compare_page.page(request, found, self.opts, self._reveal_form(request))
        except NoSuchMessage as error:  # the page keeps what the person typed, so that they can correct it
            messages.warning(request, str(error))
            return self._shown(request, str(letter), {"typed": request.POST.get("with", "")})
        except (NothingToCompare, PayloadUnreadable) as error:
            return self._back(request, found, str(error))

    def _reveal_form(self, request: HttpRequest) -> show_payload.RevealForm | None:
        return show_payload.RevealForm() if show_payload.may_reveal(request) else None

    def _back(self, request: HttpRequest, letter: Letter, why: str) -> HttpResponse:
        messages.warning(request, why)
        address = reverse(f"admin:{self._name('change')}", args=[letter.pk])
        return HttpResponseRedirect(address + listed_messages.suffix(request))

    def _revealed(self, request: HttpRequest, letter: int) -> Letter:
        """Return the message whose payload is requested.

        Raises:
            PermissionDenied: this person may not see messages, or not payloads.
            Http404: there is no such message, or this person does not see it.
        """
        if not (self.has_view_permission(request) and message_page.may_see_payloads(request.user)):
            raise PermissionDenied
        return visible_rows.row_or_404(request, self.get_queryset(request).select_related("revision"), letter)

    def _name(self, page: str) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}_{page}"


def action_of(request: HttpRequest, decision: DecisionKind) -> tuple[str, str, str, str]:
    """Return an action for `action_buttons`: name, URL name, label, and why the person may not use it (or empty)."""
    may = request.user.has_perm(decision.permission) and request.user.has_perm("reprocessing.view_parkedletter")
    closed = "" if may else capfirst(decision.takes)
    return decision.value, f"admin:parkedletter_{decision}", f"{decision.label}…", closed


def _annotated(letter: Letter, name: str) -> timedelta | None:
    length: timedelta | None = getattr(letter, name)
    return length


admin.site.register(Letter, MessagesAdmin)
