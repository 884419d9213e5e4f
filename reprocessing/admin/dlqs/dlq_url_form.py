"""The first step of adding a DLQ: a person enters the queue's URL or ARN, and the service proposes other settings."""

from __future__ import annotations

from typing import Any

from django import forms

from reprocessing.admin.site import fields
from reprocessing.domain.dlqs.dlq_name import propose_name
from reprocessing.domain.errors import QueueUnreachable
from reprocessing.domain.message import arn as arns
from reprocessing.gateways.sqs import QueueAddress
from reprocessing.models import DeadLetterQueue
from reprocessing.pipeline.dlqs import adopt, examine
from reprocessing.store.dlqs import discovered_queues


class UrlForm(forms.Form):
    """The form that asks which queue is to be added."""

    url = forms.CharField(
        max_length=2_048, label="Queue URL or ARN",
        widget=forms.TextInput(
            attrs={"placeholder": "https://sqs.eu-west-1.amazonaws.com/111122223333/orders-dlq", "autofocus": True}
        ),
        help_text="The URL or ARN of the dead-letter queue, as the SQS console shows it.",
    )  # fmt: skip
    role_arn = fields.RoleField(
        required=False, max_length=2_048, label="IAM role",
        help_text="ARN of a role to assume, if the service's own credentials may not read the queue. Empty: no role.",
    )  # fmt: skip

    def clean_url(self) -> str:
        """Return the URL or ARN. Refuse a text that is neither the URL nor the ARN of a queue."""
        given = str(self.cleaned_data["url"])
        arn = arns.read(given)
        if arn is None:
            try:
                QueueAddress.of(given)
            except QueueUnreachable as error:
                raise forms.ValidationError(str(error)) from error
        elif arn.named is not arns.ResourceKind.QUEUE:
            raise forms.ValidationError(f"This is {arn.named.value}. Enter the URL or the ARN of a queue.")
        return given

    def typed(self) -> dict[str, Any]:
        """Return the initial values of the next form if SQS does not answer: URL, role, and a proposed name."""
        given = self.cleaned_data
        return _values(given["url"], given["role_arn"], arns.read(given["url"]) or _arn_of(given["url"]))

    def found(self) -> dict[str, Any]:
        """Return the initial values of the next form: URL, role, a proposed name, and source queues.

        The source queues are those that an earlier discovery found, but that SQS does not list.

        Raises:
            QueueUnreachable: SQS did not return the URL of the queue with this ARN.
        """
        given = self.cleaned_data
        address = examine.queue_address(given["url"], given["role_arn"])
        arn = arns.read(given["url"]) or _arn_of(address.url)
        discovered = discovered_queues.find_dlq(arn.text) if arn else None
        known = adopt.named_sources(discovered) if discovered else ()
        role = given["role_arn"] or (discovered.role_arn if discovered else "")
        return {**_values(address.url, role, arn), "sources": "\n".join(known)}


def _values(url: str, role: str, arn: arns.Arn | None) -> dict[str, Any]:
    taken = set(DeadLetterQueue.objects.values_list("name", flat=True))
    return {"url": url, "role_arn": role, "name": propose_name(arn, taken) if arn else ""}


def _arn_of(url: str) -> arns.Arn | None:
    return arns.read(QueueAddress.of(url).arn)
