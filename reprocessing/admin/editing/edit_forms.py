"""The forms with which a person edits a message: body, attributes, and the confirmation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django import forms
from django.forms import BaseFormSet, formset_factory

from reprocessing.admin.messages.readable_bytes import visible
from reprocessing.admin.site.confirmed_action import reason_field
from reprocessing.domain.message.envelope import Attribute, unpack_attributes
from reprocessing.domain.message.redrive_attributes import MOST_ATTRIBUTES, MarkNames
from reprocessing.domain.parking_lot import edit_policy
from reprocessing.domain.parking_lot.edit_policy import LockedAttribute, SelectorsByPurpose, SensitiveAttribute
from reprocessing.pipeline.parking_lot.edit import Alteration
from reprocessing.store.parking_lot.message_edits import EditableLetter

_EMPTY_ROWS: Final = 3
_MOST_ROWS: Final = 3 * MOST_ATTRIBUTES
_LONGEST: Final = 1_048_576  # max characters of a body. SQS allows as many bytes


class BodyForm(forms.Form):
    """The form of the body, with checkboxes (`gone`) that remove attributes whose values cannot be typed."""

    body = forms.CharField(
        required=False, strip=False, max_length=2 * _LONGEST,  # a browser sends a line end as 2 characters
        widget=forms.Textarea(attrs={"rows": 18, "spellcheck": "false", "autocomplete": "off", "wrap": "soft"}),
    )  # fmt: skip
    gone = forms.MultipleChoiceField(required=False, widget=forms.CheckboxSelectMultiple)


class AttributeForm(forms.Form):
    """The form of one attribute of a message. A form whose name and value are both empty is ignored."""

    name = forms.CharField(required=False, max_length=256)
    type = forms.CharField(required=False, max_length=256, initial="String")
    value = forms.CharField(
        required=False, strip=False, widget=forms.Textarea(attrs={"rows": 1, "spellcheck": "false"})
    )
    remove = forms.BooleanField(required=False)


class EditConfirmForm(forms.Form):
    """The form below the preview of an edit: the reason, and what happens after saving.

    `touched`: why changed values are sensitive, for example because the ordering key is read from them. If there are
    such values, the person must tick a box to confirm the change.
    """

    reason = reason_field()
    then = forms.ChoiceField(
        label="After saving", widget=forms.RadioSelect, initial="keep",
        choices=[("replay", "release now"), ("keep", "keep parked")],
    )  # fmt: skip
    new_key = forms.BooleanField(
        label="New idempotency key", required=False,
        help_text="The consumer treats the message as new. With the old key, the consumer may skip the message.",
    )  # fmt: skip
    knowing = forms.BooleanField(
        label="I know that keys or rules use this value",
        error_messages={"required": "Tick this box, or undo the change."},
    )

    def __init__(self, *args: Any, may_replay: bool, touched: Sequence[str], **kwargs: Any) -> None:  # noqa: ANN401  Django's own
        super().__init__(*args, **kwargs)
        self.may_replay, self.touched = may_replay, touched
        if not touched:
            del self.fields["knowing"]
        if not may_replay:
            then = self.fields["then"]
            assert isinstance(then, forms.ChoiceField)  # noqa: S101  for the type checker
            then.choices = [("keep", "keep parked")]


@dataclass(frozen=True, slots=True)
class LockedField:
    """An attribute that can be neither edited nor removed: its name, type and value for display, and the reason."""

    name: str
    type: str
    value: str
    why: str


class EditForms:
    """The forms of an edit.

    Attributes:
        text: the form of the body.
        rows: the forms of the attributes.
        closed: why the body cannot be edited; empty: it can be edited.
        locked: attributes that can be neither edited nor removed.
    """

    def __init__(
        self, current: EditableLetter, names: MarkNames, keys: SelectorsByPurpose,
        data: Mapping[str, Any] | None = None, *,
        written: Alteration | None = None,
    ) -> None:  # fmt: skip
        self._body, self._own = bytes(current.body), unpack_attributes(bytes(current.attributes))
        self._names, self._keys = names, keys
        self.closed = edit_policy.why_not_editable(self._body, self._own)
        to = written or Alteration(self._body, self._own)
        found = {name: edit_policy.attribute_class(name, names, keys) for name in self._own}
        self._locked = {name: why.why for name, why in found.items() if isinstance(why, LockedAttribute)}
        self._fixed = {
            name: why for name, own in self._own.items() if name not in self._locked and (why := _fixed(own))
        }
        self.locked = [_locked_field(name, self._own[name], why) for name, why in sorted(self._locked.items())]
        self.text = BodyForm(
            data, initial={"body": _typed(to.body), "gone": [n for n in self._fixed if n not in to.attributes]}
        )
        self._fill_choices()
        rows = formset_factory(AttributeForm, extra=_EMPTY_ROWS, max_num=_MOST_ROWS, absolute_max=_MOST_ROWS)
        self.rows: BaseFormSet[AttributeForm] = rows(data, initial=list(self._rows(to.attributes)))
        for row in self.rows:
            self._mark(row)

    def alteration(self) -> Alteration | None:
        """Return the edited body and attributes; None: the forms have errors."""
        if not (self.text.is_valid() and self.rows.is_valid()):
            return None
        body = (
            self._body
            if self.closed
            else edit_policy.with_original_line_ends(self.text.cleaned_data["body"], self._body)
        )
        gone = self.text.cleaned_data["gone"]
        kept = {n: own for n, own in self._own.items() if n in self._locked or (n in self._fixed and n not in gone)}
        for row in self.rows:
            given = row.cleaned_data
            name, value = given.get("name", ""), given.get("value", "")
            if given.get("remove") or not (name or value):
                continue
            if name in kept:
                row.add_error("name", "An attribute has this name already.")
                return None
            kept[name] = self._attribute(name, given.get("type", ""), value)
        return Alteration(body, kept)

    def _attribute(self, name: str, kind: str, value: str) -> Attribute:
        former = self._own.get(name)
        like = former.value.encode() if former and isinstance(former.value, str) else b""
        return Attribute(kind, edit_policy.with_original_line_ends(value, like).decode(errors="surrogatepass"))

    def _rows(self, attributes: Mapping[str, Attribute]) -> Iterator[dict[str, str]]:
        for name, attribute in sorted(attributes.items()):
            if name not in self._locked and name not in self._fixed and isinstance(attribute.value, str):
                yield {"name": name, "type": attribute.type, "value": attribute.value}

    def _fill_choices(self) -> None:
        gone = self.text.fields["gone"]
        assert isinstance(gone, forms.MultipleChoiceField)  # noqa: S101  for the type checker
        gone.choices = [(name, f"{visible(name)}: {why}") for name, why in sorted(self._fixed.items())]

    def _mark(self, row: AttributeForm) -> None:
        """Add a warning to the form of an attribute that a key or a rule reads."""
        policy = edit_policy.attribute_class(str(row.initial.get("name", "")), self._names, self._keys)
        if isinstance(policy, SensitiveAttribute):
            row.fields["name"].help_text = f"{policy.why[0].upper()}{policy.why[1:]}."


def _fixed(attribute: Attribute) -> str:
    """Return why an attribute can be removed, but not edited; empty: it can be edited."""
    if isinstance(attribute.value, bytes):
        return f"{_bytes(attribute.value)}, which cannot be typed"
    why = edit_policy.why_not_text(attribute.value.encode(errors="surrogatepass"))
    return f"its text cannot be typed: {why}" if why else ""


def _locked_field(name: str, attribute: Attribute, why: str) -> LockedField:
    value = attribute.value if isinstance(attribute.value, str) else _bytes(attribute.value)
    return LockedField(visible(name), visible(attribute.type), visible(value), why)


def _bytes(value: bytes) -> str:
    return f"{len(value):,} byte{'' if len(value) == 1 else 's'}"


def _typed(body: bytes) -> str:
    return body.decode(errors="replace")
