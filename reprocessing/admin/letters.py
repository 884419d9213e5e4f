"""Every letter, whatever its state: to be looked at."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any, ClassVar
from uuid import UUID

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import DateTimeField, DurationField, ExpressionWrapper, F, Func, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.views.decorators.http import require_safe

from reprocessing.admin import answer, letter_page
from reprocessing.admin.history import History
from reprocessing.admin.reading import duration, visible
from reprocessing.models import DeadLetter, DeadLetterQueue, Lane, Payload

logger = logging.getLogger(__name__)

_NOW = Func(function="redrive_now", output_field=DateTimeField())
_KEY_SHOWN = 60
_LANES_FOUND = 100


class Letters(History):
    """Lists and pages of letters. Bodies are in no list; a page shows one to those who may see payloads."""

    change_form_template = "reprocessing/admin/letter.html"
    list_display: tuple[str, ...] = (
        "message_id",
        "dlq",
        "state",
        "key",
        "age",
        "attempts",
        "time_left",
        "captured_at",
    )
    list_filter: ClassVar[tuple[str, ...]] = ("dlq", "state")
    list_select_related = ("dlq",)
    ordering: ClassVar[tuple[str, ...]] = ("-id",)
    sortable_by: ClassVar[tuple[str, ...]] = ()
    search_fields = ("message_id",)
    search_help_text = "A whole message id, redrive id or ordering key."
    fieldsets = (
        (None, {"fields": ("public_id", "message_id", "dlq", "origin", "target", "state", "presumed", "duplicate_of")}),
        ("Why it is parked", {"fields": ("reason", "explanation", "released_by")}),
        ("Its place", {"fields": ("key", "place", "lane", "run", "due_at", "twin_key")}),
        ("Counted", {"fields": ("attempts", "not_sent", "size")}),
        ("When", {"fields": ("died_at", "age", "captured_at", "expires_at", "time_left", "finished_at")}),
    )
    readonly_fields = ("key", "place", "twin_key", "explanation", "age", "time_left")

    class Media:
        css = {"all": ("reprocessing/letter.css",)}  # noqa: RUF012 - Django's shape of a Media

    def get_queryset(self, request: HttpRequest) -> QuerySet[DeadLetter]:
        """Letters with their age and the time they have left, by the database's clock."""
        letters: QuerySet[DeadLetter] = super().get_queryset(request)
        return letters.annotate(
            _age=ExpressionWrapper(_NOW - F("died_at"), output_field=DurationField()),
            _left=ExpressionWrapper(F("expires_at") - _NOW, output_field=DurationField()),
        )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[DeadLetter], search_term: str
    ) -> tuple[QuerySet[DeadLetter], bool]:
        """The letters of exactly that message id, redrive id or ordering key."""
        text = search_term.strip().replace("\0", "")
        return (queryset.filter(self.named(text)) if text else queryset), False

    def named(self, text: str) -> Q:
        """Those that go by this text. Each part is an index's own question: this table can be a large one."""
        dlqs = list(DeadLetterQueue.objects.values_list("pk", flat=True))
        lanes = list(Lane.objects.filter(dlq__in=dlqs, key=text).values_list("pk", flat=True)[:_LANES_FOUND])
        return Q(dlq__in=dlqs, message_id=text) | Q(lane__in=lanes) | redrive_id(text)

    @admin.display(description="ordering key", empty_value="none")
    def key(self, letter: DeadLetter) -> str | None:
        """The key whose lane it belongs to."""
        return letter.ordering_key and _short(letter.ordering_key)

    @admin.display(description="sequence")
    def place(self, letter: DeadLetter) -> str | None:
        """What its lane is sorted by."""
        return letter.sequence and visible(letter.sequence)

    @admin.display(description="idempotency key", empty_value="its message id")
    def twin_key(self, letter: DeadLetter) -> str | None:
        """What makes another letter its twin."""
        return letter.idempotency_key and visible(letter.idempotency_key)

    @admin.display(description="detail")
    def explanation(self, letter: DeadLetter) -> str:
        """What is known beyond the reason."""
        return visible(letter.detail or letter.objection)

    @admin.display(description="age", ordering="died_at")
    def age(self, letter: DeadLetter) -> str:
        """How long ago it was sent to its origin."""
        return duration(_annotated(letter, "_age"))

    @admin.display(description="time left in SQS", ordering="expires_at")
    def time_left(self, letter: DeadLetter) -> str:
        """Until SQS deletes a copy that still lies in the dlq; what is kept here stays."""
        return duration(_annotated(letter, "_left"))

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The letter's page."""
        context: dict[str, Any] = {}
        letter = self.get_object(request, object_id)
        if letter is not None and self.has_view_permission(request, letter):
            context = letter_page.page(letter, request.user) | answer.panel(letter, request.user)
            context |= self.page_of(request, letter)
            if context["contents"]:
                logger.info("the payload of letter %s was shown to %s", letter.public_id, request.user.pk)
        return super().change_view(request, object_id, form_url, context | (extra_context or {}))

    def page_of(self, request: HttpRequest, letter: DeadLetter) -> dict[str, Any]:
        """What else this desk's page of a letter needs."""
        return {"body_url": f"admin:{self.opts.app_label}_{self.opts.model_name}_body"}

    def get_urls(self) -> list[URLPattern]:
        """Django's, and the bytes of a body."""
        name = f"{self.opts.app_label}_{self.opts.model_name}_body"
        return [path("<int:letter>/body", self.admin_site.admin_view(self.body), name=name), *super().get_urls()]

    def body(self, request: HttpRequest, letter: int) -> HttpResponse:
        """The bytes of a body as they were captured, as a file: no browser shows or runs them."""
        return require_safe(self._body)(request, letter)

    def _body(self, request: HttpRequest, letter: int) -> HttpResponse:
        if not (self.has_view_permission(request) and letter_page.may_see_payloads(request.user)):
            raise PermissionDenied
        mine = self.get_queryset(request).filter(pk=letter).values("pk")
        payload = Payload.objects.filter(letter__in=mine).select_related("letter").first()
        if payload is None:
            raise Http404
        logger.info("the body of letter %s was handed to %s", payload.letter.public_id, request.user.pk)
        return HttpResponse(
            bytes(payload.body),
            content_type="application/octet-stream",
            headers={"Content-Disposition": f'attachment; filename="{payload.letter.public_id}.body"'},
        )


def redrive_id(text: str) -> Q:
    """The letter whose redrive id this text is; of another text, none."""
    try:
        return Q(public_id=UUID(text))
    except ValueError:
        return Q(pk__in=[])


def _short(text: str) -> str:
    shown = visible(text)
    return shown if len(shown) <= _KEY_SHOWN else f"{shown[:_KEY_SHOWN]}…"


def _annotated(letter: DeadLetter, name: str) -> timedelta | None:
    length: timedelta | None = getattr(letter, name)
    return length


admin.site.register(DeadLetter, Letters)
