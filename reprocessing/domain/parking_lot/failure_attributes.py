"""Find the failure that a broker, a framework or a consumer wrote into a message's attributes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from reprocessing.domain.message import body_outline
from reprocessing.domain.message.envelope import Attributes
from reprocessing.domain.message.identity import LetterFacts
from reprocessing.domain.parking_lot import text_pattern
from reprocessing.domain.parking_lot.text_pattern import STATUS

#: Attributes that have a failure's type, each with the framework that sets it.
_FRAMEWORKS: Final = (
    ("NServiceBus.ExceptionInfo.ExceptionType", "NServiceBus"),  # docs.particular.net/nservicebus/messaging/headers
    ("MT-Fault-ExceptionType", "MassTransit"),  # MassTransit.MessageHeaders
    ("rbs2-error-details", "Rebus"),  # Rebus.Messages.Headers: the exception's text, which begins with its type
    ("kafka_dlt-exception-cause-fqcn", "Spring"),  # docs.spring.io, KafkaHeaders; bridges from Kafka copy these headers
    ("kafka_dlt-exception-fqcn", "Spring"),
    ("exception-type", "Wolverine"),  # wolverinefx.net, dead letter queues
    ("x-first-death-reason", "RabbitMQ"),  # rabbitmq.com/docs/dlx
    ("DeadLetterReason", "Service Bus"),  # learn.microsoft.com, dead-letter queues
)
#: Usual names of attributes with a failure's type, in lower case without hyphens, underscores and full stops.
_CUSTOMARY: Final = (
    "exceptiontype", "exceptionclass", "exceptionname", "exctype", "excclass", "xexceptiontype", "xexceptionclass",
    "errortype", "errorclass", "errorname", "xerrortype", "failuretype", "failurereason", "errorcode", "xerrorcode",
    "failurecode", "reasoncode",
)  # fmt: skip
#: Attributes with a failure's text; Lambda sets the first of these attributes.
_TEXTS: Final = ("errormessage", "exceptionmessage", "failuremessage")
_PLAIN: Final = str.maketrans("", "", "-_.")

_END_OF_A_TYPE: Final = re.compile(r":\s|[\n,;(`]")


@dataclass(frozen=True, slots=True)
class NamedFailure:
    """A failure that an attribute of a message names.

    Attributes:
        source: the framework, or the attribute's name as it is spelled in the message.
        key: the framework, or a form of the attribute's name that is equal for all its spellings.
        failure: the failure's type, or its text without values of the letter.
        attribute: the attribute's name as it is spelled in the message.
    """

    source: str
    key: str
    failure: str
    attribute: str


def named_failure(letter: LetterFacts) -> NamedFailure | None:
    """Return the failure that a letter's attributes name; None: they name no failure.

    Attributes with the failure's type are preferred to attributes with its text.
    """
    attributes = letter.attributes
    for name, framework in _FRAMEWORKS:
        if kind := _type_in(attributes, name):
            return NamedFailure(framework, framework, kind, name)
    plain = {name.lower().translate(_PLAIN): name for name in sorted(attributes, reverse=True)}
    for customary in _CUSTOMARY:
        if customary in plain and (kind := _type_in(attributes, plain[customary])):
            return NamedFailure(plain[customary], customary, kind, plain[customary])
    for customary in _TEXTS:
        if customary in plain and (told := without_quotes(_text(attributes, plain[customary]), letter)):
            return NamedFailure(plain[customary], customary, told, plain[customary])
    return None


def without_quotes(text: str, letter: LetterFacts) -> str:
    """Return the first line of a failure's text, without values of the letter that the text quotes."""
    others = (
        attribute.value
        for attribute in letter.attributes.values()
        if isinstance(attribute.value, str) and attribute.value != text
    )
    return text_pattern.first_line(text, [*body_outline.texts_of_json(letter.document), *others])


def _type_in(attributes: Attributes, name: str) -> str:
    """Return the type, such as an exception's name, at the beginning of an attribute's text; "": there is none."""
    first = _END_OF_A_TYPE.split(_text(attributes, name)[: text_pattern.LONGEST].strip(), maxsplit=1)[0].rstrip(":.")
    return first if STATUS.fullmatch(first) else text_pattern.type_name(first)


def _text(attributes: Attributes, name: str) -> str:
    attribute = attributes.get(name)
    return attribute.value if attribute is not None and isinstance(attribute.value, str) else ""
