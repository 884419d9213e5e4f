"""Make characters of a text visible that are hidden, or that change its direction: a template filter, a form renderer.

The module also registers other functions as template filters: those of `admin/site/labels.py`, which return labels of
fields, models and states; `active_filters`, which returns the active filters of a list; and `readonly_value`, which
returns the value of a field that nobody can change on the page.
"""

from __future__ import annotations

from typing import Any, Final

from django import template
from django.forms.renderers import DjangoTemplates
from django.forms.utils import ErrorList
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from reprocessing.admin.site import active_filters, labels, readonly_values
from reprocessing.domain.message import safe_text

register = template.Library()
_ERRORS: Final = "django/forms/errors/"
for _name in ("column", "plural", "singular", "state"):
    register.filter(_name, getattr(labels, _name))
register.filter("active_filters", active_filters.filters_of_list)
register.filter("readonly_value", readonly_values.readonly_value)


@register.filter
def visible(text: object) -> str:
    """Return a text or markup in which each hidden or direction-changing character is written as <U+XXXX>."""
    shown = str(text)
    if not isinstance(shown, SafeString):
        return safe_text.visible(shown)
    if shown.isprintable():
        return shown
    parts = (char if char.isprintable() else escape(safe_text.visible(char)) for char in shown)
    return mark_safe("".join(parts))  # noqa: S308  the markup was safe before, and the inserted text is escaped


class FormRenderer(DjangoTemplates):
    """Django's form renderer. It also makes hidden characters in error messages visible."""

    def render(self, template_name: str, context: dict[str, Any], request: Any = None) -> str:  # noqa: ANN401  Django's own
        """Return the HTML of a form or of a part of a form, with hidden characters in its errors made visible."""
        errors = context.get("errors")
        if template_name.startswith(_ERRORS) and isinstance(errors, ErrorList):
            context = {**context, "errors": [visible(error) for error in errors]}
        return str(super().render(template_name, context, request))
