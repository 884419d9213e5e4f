"""What pages and forms show of other people's words: in a form that cannot deceive who reads it."""

from __future__ import annotations

from typing import Any, Final

from django import template
from django.forms.renderers import DjangoTemplates
from django.forms.utils import ErrorList
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from reprocessing.domain.message import safe_text

register = template.Library()
_ERRORS: Final = "django/forms/errors/"


@register.filter
def visible(text: object) -> str:
    """A text with what is not seen, or turns others around, as its number; of markup of Django's own too."""
    said = str(text)
    if not isinstance(said, SafeString):
        return safe_text.visible(said)
    if said.isprintable():
        return said
    parts = (one if one.isprintable() else escape(safe_text.visible(one)) for one in said)
    return mark_safe("".join(parts))  # noqa: S308  it was before, and what is put in is escaped


class FormRenderer(DjangoTemplates):
    """Django's own; what an error quotes cannot deceive."""

    def render(self, template_name: str, context: dict[str, Any], request: Any = None) -> str:  # noqa: ANN401  Django's own
        """A form, or a part of one."""
        errors = context.get("errors")
        if template_name.startswith(_ERRORS) and isinstance(errors, ErrorList):
            context = {**context, "errors": [visible(one) for one in errors]}
        return str(super().render(template_name, context, request))
