"""What readers of JSON differ about, or fall over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.proof.poison.corpus.payload import Payload

_DEPTHS: Final = (1, 63, 64, 65, 66, 500, 999, 1_000, 1_001, 2_000, 7_000, 20_000, 100_000)
_READ: Final = 64  #: levels that the service reads


def some() -> Iterator[Payload]:
    yield from _nested()
    for name, body in (_ESCAPES | _NUMBERS | _NAMES | _FORMS).items():
        yield Payload(f"json: {name}", body)
    for name, body in _NOT_FOR_US.items():
        yield Payload(f"json: {name}", body, closed=True)


def _nested() -> Iterator[Payload]:
    for depth in _DEPTHS:
        deep = depth > _READ
        yield Payload(f"json: arrays {depth} deep", "[" * depth + "]" * depth, closed=deep)
        inner = '{"key":' * depth + "1" + "}" * depth
        yield Payload(f"json: objects {depth} deep", inner, closed=deep)
    yield Payload("json: 100000 arrays opened", "[" * 100_000, closed=True)
    yield Payload("json: 50000 pairs opened", '[{"a":' * 50_000, closed=True)
    yield Payload("json: brackets in a text", '{"key": "' + "[{" * 1_000 + '"}')
    yield Payload("json: closed before it opens", "]" * 1_000 + "[" * 1_000)


_ESCAPES: Final = {
    "NUL in a value": r'{"note": "before\u0000after-nul"}',
    "NUL in a name": r'{"note\u0000name": "value of a nul name"}',
    "NUL six times": r'{"note": "\u0000\u0000\u0000\u0000\u0000\u0000"}',
    "a pair": r'{"note": "\ud83d\ude00 escaped pair"}',
    "an escaped backslash before u": r'{"note": "\\ud800 no escape at all"}',
    "every short escape": r'{"note": "\"\\\/\b\f\n\r\t every escape"}',
    "control characters, escaped": r'{"note": "\u0001\u0008\u001f\u007f\u0085 controls"}',
    "noncharacters, escaped": r'{"note": "\ufffe\uffff\ufdd0 noncharacters"}',
    "an unknown escape": r'{"note": "\x41 is not an escape"}',
    "an escape that ends early": r'{"note": "\u12"}',
    "upper and lower hex": r'{"note": "\u00E9\u00e9 both hexes"}',
    "letters escaped one by one": r'{"\u006b\u0065\u0079": "\u0061\u0062\u0063 escaped name"}',
    "a text that never ends": '{"note": "it never ends',
    "an escape at the very end": '{"note": "ends in a backslash \\',
    "raw tab in a text": '{"note": "raw\ttab inside"}',
    "raw line end in a text": '{"note": "raw\nline inside"}',
}
_NUMBERS: Final = {
    "1E5": '{"amount": 1E5, "as": "exponent kept"}',
    "1.10": '{"amount": 1.10, "as": "zero kept"}',
    "minus nought": '{"amount": -0, "other": -0.0}',
    "leading noughts": '{"amount": 007}',
    "a plus": '{"amount": +1}',
    "a point without digits": '{"amount": 1.}',
    "hexadecimal": '{"amount": 0xCAFE}',
    "1e400": '{"amount": 1e400, "other": -1e400}',
    "1e-400": '{"amount": 1e-400}',
    "the largest exponent of all": '{"amount": 1e999999999999999999}',
    "2 to the 53rd and one": '{"id": 9007199254740993}',
    "30 digits": '{"id": 123456789012345678901234567890}',
    "4300 digits": '{"id": ' + "9" * 4_300 + "}",
    "4301 digits": '{"id": ' + "8" * 4_301 + "}",
    "200000 digits": '{"id": ' + "7" * 200_000 + "}",
    "a fraction of 100000 digits": '{"id": 0.' + "3" * 100_000 + "}",
    "131071": '{"id": 1e131071}',
    "a bare number": "42",
    "other people's digits": '{"amount": ٣٤}',
}
_NAMES: Final = {
    "equal names": '{"key": "first-of-equals", "key": "last-of-equals"}',
    "equal names once escaped": r'{"key": "plain-name", "\u006bey": "escaped-name"}',
    "an empty name": '{"": "under an empty name"}',
    "names alike": '{"Key": 1, "KEY": 2, "key": "three alike"}',
    "names of prototypes": '{"__proto__": {"admin": true}, "constructor": {"prototype": {}}}',
    "names of Python": '{"__class__": "x", "py/object": "os.system", "$type": "System.Object"}',
    "20000 names": "{" + ",".join(f'"name-{number}":{number}' for number in range(20_000)) + "}",
    "a name of 100000 characters": '{"' + "n" * 100_000 + '": 1}',
    "no quotes": "{key: 'unquoted'}",
    "a reference": '{"$ref": "#"}',
}
_FORMS: Final = {
    "null": "null",
    "true": "true",
    "a text": '"only a text, no object"',
    "an empty object": "{}",
    "an empty text": '""',
    "objects in a row": '{"a": 1}{"b": "second object"}',
    "one object a line": '{"a": 1}\n{"b": "second line"}\n',
    "trailing garbage": '{"a": "before garbage"} and this',
    "trailing comma": '{"a": "before a comma",}',
    "a comment": '{"a": 1 /* a comment inside */}',
    "CRLF": '{\r\n  "a": "carriage returns"\r\n}\r\n',
    "blanks all around": '\t \r\n {"a": "blanks around"} \n\r\t ',
    "a blank that JSON does not know": '{"a":\u00a0"no-break space"}',
    "half an object": '{"a": {"b": "half an object"',
    "10000 objects": "[" + ",".join(['{"k":"v"}'] * 10_000) + "]",
    "a callback": 'callback({"a": "padded"});',
    "XSSI prefix": ')]}\',\n{"a": "behind a prefix"}',
    "a mark twice": '\ufeff\ufeff{"a": "two marks"}',
    "a mark within": '{"a": "\ufeffmark within"}',
    "undefined": '{"a": undefined}',
}
_NOT_FOR_US: Final = {
    "digits and digits of exponent": '{"id": 1e' + "1" * 50_000 + "}",
    "a negative exponent of twenty digits": '{"amount": 1e-99999999999999999999}',
    "an exponent of twenty digits": '{"amount": 1e99999999999999999999}',
    "NaN": '{"key": NaN, "as": "not a number"}',
    "Infinity": '{"key": Infinity, "as": "boundless"}',
    "minus Infinity": '{"key": -Infinity, "as": "boundless below"}',
    "byte order mark": '\ufeff{"key": "behind a mark"}',
    "the upper half of a pair": r'{"key": "half \ud800 alone"}',
    "the lower half of a pair": r'{"key": "half \udc00 alone"}',
    "halves the wrong way around": r'{"key": "\ude00\ud83d swapped"}',
    "the upper half twice": r'{"key": "\ud83d\ud83d\ude00 one too many"}',
    "half a pair in a name": r'{"\udfff": "under half a name"}',
}
