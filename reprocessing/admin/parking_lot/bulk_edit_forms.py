"""The form with which a person writes an edit of many messages: one change of one field, or a whole JSON Patch."""

from __future__ import annotations

from typing import Any, Final

from django import forms

from reprocessing.domain.errors import InvalidPatch
from reprocessing.domain.parking_lot import json_patch
from reprocessing.domain.parking_lot.json_patch import LONGEST_PATCH, JsonPatch, Op

_TEXT: Final = {"spellcheck": "false", "autocomplete": "off"}
_OPERATIONS: Final = [
    (Op.REPLACE.value, "replace the value of"), (Op.ADD.value, "add"), (Op.REMOVE.value, "remove"),
]  # fmt: skip


class BulkEditForm(forms.Form):
    """The form of an edit of many messages. When it is valid, `cleaned_data["wanted"]` is the JSON Patch."""

    op = forms.ChoiceField(label="Change", choices=_OPERATIONS, required=False)
    path = forms.CharField(
        label="Path", required=False, strip=False, max_length=1_024,
        widget=forms.TextInput(attrs={**_TEXT, "placeholder": "/customer/country"}),
        help_text="A JSON Pointer: names and list positions, each after a slash. Positions start at 0.",
    )  # fmt: skip
    value = forms.CharField(
        label="Value", required=False, max_length=LONGEST_PATCH,
        widget=forms.Textarea(attrs={**_TEXT, "rows": 2, "placeholder": '"DE"'}),
        help_text='JSON, such as 12.50, true, null, {} or "DE". Anything else is taken as text.',
    )  # fmt: skip
    patch = forms.CharField(
        label="JSON Patch (RFC 6902)", required=False, max_length=2 * LONGEST_PATCH,
        widget=forms.Textarea(attrs={
            **_TEXT, "rows": 8,
            "placeholder": '[{"op": "test", "path": "/currency", "value": "EUR"},\n'
            ' {"op": "replace", "path": "/amount", "value": 12.50}]',
        }),
        help_text="Operations: test, replace, add, remove, move, copy. If one is not possible in a message, the "
        "message is not changed.",
    )  # fmt: skip

    def clean(self) -> dict[str, Any]:
        """Return the entered values with the JSON Patch.

        Refuse a form with no change, or with both a change of one field and a whole patch.
        """
        found = super().clean() or self.cleaned_data
        path, text = found.get("path", ""), found.get("patch", "").strip()
        if path and text:
            self.add_error(None, "Enter a path, or a JSON Patch, not both.")
        elif not path and not text:
            self.add_error(None, "Enter a path, or a JSON Patch.")
        elif not self.errors:
            name = "patch" if text else "path"
            try:
                wanted = text or json_patch.single_operation(found["op"] or Op.REPLACE, path, found.get("value", ""))
                found["wanted"] = JsonPatch.parse(wanted)
            except InvalidPatch as error:
                self.add_error(name, str(error))
        return found
