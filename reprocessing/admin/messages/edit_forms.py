"""The forms of an edit: a letter's text and attributes as a browser sends them, and what is asked before the deed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django import forms
from django.forms import BaseFormSet, formset_factory

from reprocessing.admin.messages.readable_bytes import visible
from reprocessing.domain.message.envelope import Attribute, unpack
from reprocessing.domain.message.redrive_attributes import ATTRIBUTES, MarkNames
from reprocessing.domain.parking_lot import edit_policy
from reprocessing.domain.parking_lot.edit_policy import Keys, Locked, Sensitive
from reprocessing.pipeline.parking_lot.edit import Alteration
from reprocessing.store.parking_lot.editing import Stand

_EMPTY_ROWS: Final = 3
_MOST_ROWS: Final = 3 * ATTRIBUTES
_LONGEST: Final = 1_048_576  # characters; SQS takes no more bytes


class Text(forms.Form):
    """The body, and the attributes that can only be taken out."""

    body = forms.CharField(
        required=False, strip=False, max_length=2 * _LONGEST,  # a browser doubles its line ends
        widget=forms.Textarea(attrs={"rows": 18, "spellcheck": "false", "autocomplete": "off", "wrap": "soft"}),
    )  # fmt: skip
    gone = forms.MultipleChoiceField(required=False, widget=forms.CheckboxSelectMultiple)


class One(forms.Form):
    """One attribute; without a name and a value it is none."""

    name = forms.CharField(required=False, max_length=256)
    type = forms.CharField(required=False, max_length=256, initial="String")
    value = forms.CharField(
        required=False, strip=False, widget=forms.Textarea(attrs={"rows": 1, "spellcheck": "false"})
    )
    remove = forms.BooleanField(required=False)


class Confirmation(forms.Form):
    """Why, and what then; what somebody goes by takes a tick of its own."""

    reason = forms.CharField(
        max_length=2_000, widget=forms.Textarea(attrs={"rows": 3}),
        help_text="Recorded with your name, for whoever asks later.",
    )  # fmt: skip
    then = forms.ChoiceField(
        label="And then", widget=forms.RadioSelect, initial="keep",
        choices=[("replay", "replay it now"), ("keep", "keep it parked")],
    )  # fmt: skip
    new_key = forms.BooleanField(
        label="Give it a new idempotency key", required=False,
        help_text="Its consumer will take it for another message than the one that it may have seen. Without this it "
        "keeps the key it has, and a consumer that remembers keys may leave it alone.",
    )  # fmt: skip
    knowing = forms.BooleanField(
        label="I know that somebody goes by this, and mean it",
        error_messages={"required": "Tick this as well, or take the change back."},
    )

    def __init__(self, *args: Any, may_replay: bool, touched: Sequence[str], **kwargs: Any) -> None:  # noqa: ANN401  Django's own
        super().__init__(*args, **kwargs)
        self.may_replay, self.touched = may_replay, touched
        if not touched:
            del self.fields["knowing"]
        if not may_replay:
            then = self.fields["then"]
            assert isinstance(then, forms.ChoiceField)  # noqa: S101  for the type checker
            then.choices = [("keep", "keep it parked")]


@dataclass(frozen=True, slots=True)
class Kept:
    """An attribute that is not in the form, and why; `value` as it is shown."""

    name: str
    type: str
    value: str
    why: str


class Draft:
    """A letter on its way to be another: the forms, and what they come to.

    Attributes:
        text: the form of the body.
        rows: the forms of its attributes.
        closed: why its body cannot be edited; empty: it can.
        locked: attributes that stay as they are.
    """

    def __init__(
        self, stand: Stand, names: MarkNames, goes_by: Keys, data: Mapping[str, Any] | None = None, *,
        written: Alteration | None = None,
    ) -> None:  # fmt: skip
        self._body, self._own = bytes(stand.body), unpack(bytes(stand.attributes))
        self._names, self._goes_by = names, goes_by
        self.closed = edit_policy.closed(self._body, self._own)
        to = written or Alteration(self._body, self._own)
        told = {name: edit_policy.standing(name, names, goes_by) for name in self._own}
        self._locked = {name: why.why for name, why in told.items() if isinstance(why, Locked)}
        self._fixed = {
            name: why for name, one in self._own.items() if name not in self._locked and (why := _fixed(one))
        }
        self.locked = [_kept(name, self._own[name], why) for name, why in sorted(self._locked.items())]
        self.text = Text(
            data, initial={"body": _typed(to.body), "gone": [n for n in self._fixed if n not in to.attributes]}
        )
        self._fill_choices()
        rows = formset_factory(One, extra=_EMPTY_ROWS, max_num=_MOST_ROWS, absolute_max=_MOST_ROWS)
        self.rows: BaseFormSet[One] = rows(data, initial=list(self._rows(to.attributes)))
        for one in self.rows:
            self._mark(one)

    def alteration(self) -> Alteration | None:
        """What was written; None: the forms say what is wrong."""
        if not (self.text.is_valid() and self.rows.is_valid()):
            return None
        body = self._body if self.closed else edit_policy.typed(self.text.cleaned_data["body"], self._body)
        gone = self.text.cleaned_data["gone"]
        kept = {n: one for n, one in self._own.items() if n in self._locked or (n in self._fixed and n not in gone)}
        for one in self.rows:
            given = one.cleaned_data
            name, value = given.get("name", ""), given.get("value", "")
            if given.get("remove") or not (name or value):
                continue
            if name in kept:
                one.add_error("name", "There is one of this name already.")
                return None
            kept[name] = self._attribute(name, given.get("type", ""), value)
        return Alteration(body, kept)

    def _attribute(self, name: str, kind: str, value: str) -> Attribute:
        former = self._own.get(name)
        like = former.value.encode() if former and isinstance(former.value, str) else b""
        return Attribute(kind, edit_policy.typed(value, like).decode(errors="surrogatepass"))

    def _rows(self, attributes: Mapping[str, Attribute]) -> Iterator[dict[str, str]]:
        for name, one in sorted(attributes.items()):
            if name not in self._locked and name not in self._fixed and isinstance(one.value, str):
                yield {"name": name, "type": one.type, "value": one.value}

    def _fill_choices(self) -> None:
        gone = self.text.fields["gone"]
        assert isinstance(gone, forms.MultipleChoiceField)  # noqa: S101  for the type checker
        gone.choices = [(name, f"{visible(name)}: {why}") for name, why in sorted(self._fixed.items())]

    def _mark(self, one: One) -> None:
        """Say of a row that somebody goes by it."""
        told = edit_policy.standing(str(one.initial.get("name", "")), self._names, self._goes_by)
        if isinstance(told, Sensitive):
            one.fields["name"].help_text = f"{told.why[0].upper()}{told.why[1:]}."


def _fixed(one: Attribute) -> str:
    """Why an attribute can be taken out, and not be written on; empty: it can."""
    if isinstance(one.value, bytes):
        return f"{_bytes(one.value)}, which cannot be typed"
    why = edit_policy.closed_text(one.value.encode(errors="surrogatepass"))
    return f"its text cannot be typed: {why}" if why else ""


def _kept(name: str, one: Attribute, why: str) -> Kept:
    value = one.value if isinstance(one.value, str) else _bytes(one.value)
    return Kept(visible(name), visible(one.type), visible(value), why)


def _bytes(value: bytes) -> str:
    return f"{len(value):,} byte{'' if len(value) == 1 else 's'}"


def _typed(body: bytes) -> str:
    return body.decode(errors="replace")
