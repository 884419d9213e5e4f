"""Conditions, expressions, regexes and letters that are written to take long."""

from __future__ import annotations

import base64
import json

#: What rules read at most; the same number as message_fields.BODY_LIMIT, intentionally written again.
SIZE = 256 * 1024


def filled(piece: str, before: str = "[", after: str = "]") -> bytes:
    """Return the largest body of equal pieces, separated by commas."""
    return (before + ",".join([piece] * ((SIZE - len(before) - len(after) + 1) // (len(piece) + 1))) + after).encode()


_BRANCH = json.dumps({"a": 1, "b": [1, 2, {"a": "x"}], "c": {"a": {"a": None}}})

#: Bodies up to the limit of rules, and one beyond.
BODIES: dict[str, bytes] = {
    "nothing": b"",
    "null": b"null",
    "no JSON": b"\xff" * SIZE,
    "digits": filled("1"),
    "fractions": filled("0.5"),
    "long fractions": filled("1." + "3" * 4_000),
    "one number": b"9" * SIZE,
    "one fraction": b"0." + b"7" * (SIZE - 2),
    "huge exponents": filled("1e999999"),
    "empty objects": filled("{}"),
    "empty arrays": filled("[]"),
    "empty texts": filled('""'),
    "one text": b'"' + b"a" * (SIZE - 2) + b'"',
    "one text of escapes": b'"' + b"\\u0041" * ((SIZE - 2) // 6) + b'"',
    "texts of escapes": filled('"\\u00e4"'),
    "quotes": b'"' + b'\\"' * ((SIZE - 2) // 2) + b'"',
    "open quotes": b'"\\' * (SIZE // 2),
    "open brackets": b"[" * SIZE,
    "open members": b'{"a":' * (SIZE // 5),
    "deep arrays": filled("[" * 60 + "]" * 60),
    "deep members": filled('{"a":' * 60 + "1" + "}" * 60),
    "a in a": filled('{"a":[{"a":[1]}]}', '{"a":[', "]}"),
    "branches": filled(_BRANCH, '{"a":[', "]}"),
    "a long a and b": filled("7", '{"a":[', "]") + b"",
    "equal twins": b'{"a":' + b"[" + b"1000," * 20_000 + b"1]" + b',"b":[' + b"1000," * 20_000 + b"2]}",
    "text and needle": b'{"a":"' + b"ab" * 60_000 + b'","b":"' + b"ab" * 5_000 + b'c"}',
    "separator and list": b'{"a":"' + b"x" * 100_000 + b'","b":[' + b'"",' * 30_000 + b'""]}',
    "long separator": b'{"a":"' + b"x" * 200_000 + b'","b":[' + b'"",' * 5_000 + b'""]}',
    "many names": ("{" + ",".join(f'"n{n}":{n}' for n in range(17_000)) + "}").encode(),
    "one name again": filled('"a":1', "{", "}"),
    "base64": base64.b64encode(filled("1")[: SIZE // 4 * 3 - 6]),
    "base64 of brackets": base64.b64encode(b"[" * (SIZE // 4 * 3)),
    "a task in a task": json.dumps({"body": base64.b64encode(filled("1")[:150_000]).decode(), "headers": {}}).encode(),
    "beyond the limit": filled("1") + b" " * SIZE,
}

_CONTROL = "a value holds a control character. Leave it out, or write a regex with \\x{...} in its place."
_SEE = ". See jmespath.org for what an expression may be."

#: Texts of conditions that are beyond the limits, and what is said of each.
CONDITIONS: list[tuple[str, str]] = [
    (
        "tenant in " + ",".join(map(str, range(1_001))),
        "in takes 1 to 1000 values, not 1001. Write in a,b or several rules.",
    ),
    ("tenant equals " + "a" * 1_025, "a value has 1024 characters at most, not 1025. Write prefix and the first part."),
    ("tenant in [" + '"a",' * 3_000_000 + '"a"]', "it has 12000015 characters. Split it into several rules."),
    (
        "tenant in " + "[" * 100_000,
        'a value that begins with " or [ must be JSON, and this is not. Write "say \\"hi\\"" or ["a,b", "c"].',
    ),
    ("tenant equals a\tb", _CONTROL), ("tenant equals a\u2028b", _CONTROL), ("tenant equals \ud800", _CONTROL),
    ("body:a\nb exists", "its field begins or ends with a space, or holds a control character. Leave that out."),
    (
        "body:" + "a" * 257 + " exists",
        "body: needs a JMESPath expression of 1 to 256 characters, such as body:order.id.",
    ),
    ("body:" + "(" * 250 + " exists", f'Invalid jmespath expression: Incomplete expression: "{"(" * 250}" ^{_SEE}'),
    ("body:" + "!" * 200 + "a exists", "its expression is nested more than 32 deep. Write a simpler one."),
    ("body:a[ exists", f'Invalid jmespath expression: Incomplete expression: "a[" ^{_SEE}'),
    ("body:(" + " in" * 300_000, f'Invalid jmespath expression: Incomplete expression: "(" ^{_SEE}'),
    (
        " " * 1_000_000 + "in",
        ("write FIELD OPERATOR VALUE. FIELD is dlq, source, attribute:NAME, body:JMESPATH, type, tenant, task or "
         "task:JMESPATH; OPERATOR is equals, in, prefix, exists or regex."),
    ),
]  # fmt: skip

EXPRESSIONS: list[str] = [
    "@", "[*]", "[*].a", "[*].[*]", "[*].*", "*.*.*.*.*", "a[*].*[].*[].*[]",
    "[*]|[*]|[*]|[*]|[*]|[*]|[*]|[*]|[*]|[*]", "a[].a[].a[].a[].a[]", "[][][][][][][][][][][]", "@.[@,@,@]",
    "|".join(["[@,@,@,@]"] * 25), "|".join(["[@,@][]"] * 30), "|".join(["{a:@,b:@}"] * 25) + " == @",
    "[" + ",".join(["@"] * 120) + "][]", "[" + ",".join(["a"] * 120) + "][][]",
    "|".join(["[@,@]"] * 30) + "|contains(@,@)", "[|".join(["[@,@]"] * 20), "||".join(["a==b"] * 40),
    "||".join(["a!=b"] * 40) + "||a", "||".join(["contains(a,b)"] * 15), "||".join(["contains(@,'ab')"] * 12),
    "[*].contains(@,@)", "[?@==@]|[?@==@]|[?@==@]|[?@==@]|[?@==@]|[?@==@]|[?@==@]", "[?a[?a[?a[?a[?a]]]]]",
    "[?!contains(@,`1`)]", "[?@ > `0`]", "[?@ < 'a']", "a[?a == `1`]|[?b]|[?c]|[0]", "join(a,b)", "join(',', [*])",
    "join('" + "x" * 200 + "',@)", "join(join(',',b),b)", "keys(@)", "values(@)[*].a", "length(keys(@))",
    "not_null(a,b,c,values(@))", "[::-1]|[::-1]|[::-1]|[::-1]|[::-1]", "[::0]", "[99999999999999999999999999]",
    "[-1][-1][-1][-1]", "(" * 100 + "a" + ")" * 100, "!" * 200 + "a", "[" * 40 + "@" + "]" * 40, "a" + ".a" * 127,
    "a" + "[0]" * 80, "a" + "[]" * 120, "*" + ".*" * 100, "`" + "[" * 120 + "]" * 120 + "`", "`1e999999999`",
    "sort(@)", "sort_by(@, &a)", "map(&[@,@,@], @)", "map(&map(&map(&@,@),@),@)", "max_by(@, &to_number(a))",
    "to_string(to_array(to_string(to_array(to_string(@)))))", "reverse(reverse(reverse(@)))",
    "merge(@,@,@,@,@,@,@,@)", "sum([*])", "nobody_knows(@)", "contains(@)", "a[", "", " ", "\\", "'" * 99, '"' * 99,
    "`" * 99, "a" * 256, "a" * 257, "a||" * 85 + "a",
]  # fmt: skip

REGEXES: list[str] = [
    "(a+)+$", "(a|a)*$", "(a|aa)+$", "([a-zA-Z]+)*$", "^(([a-z])+.)+[A-Z]([a-z])+$", "(.*)*(.*)*(.*)*x", "(.*a){20}",
    "(.*a){60}x", "(x{1000}){1000}", "((a{10}){10}){10}", "((((a{9}){9}){9}){9}){9}", "((((.?){30}){30}){1})",
    "a{1001}", "a{1000}b{1000}", "(a?){500}a{500}", "(a?){100}(a*){100}", r"(\w+)\1", r"(?P<n>a)(?P=n)", "(?=a)b",
    "(?<!a)b", "(?>a+)b", "a++b", "(?(1)a|b)", "(" * 240 + "a" + ")" * 240, "(" * 300, "[" * 500, "(?:" * 160,
    r"[\pL\pN]{1,1000}x", r"(\pL{0,300}){3}q", r"\pL{1,15}x", r"(?i)(ä|ö|.){200}", ".{0,900}z.{0,90}", ".{100}z$",
    "(a|b)*a(a|b){15}c", "(a|b)*a(a|b){120}c", "(a|b)*a(a|b){400}c", "(ab?){100}$", ".*" * 200 + "c",
    "|".join(["a*b"] * 120), "|".join(f"{n}a.*b" for n in range(70)), r"^(\w+\s?)*$", r"(\d+,?)+$", "^((ab)*)+$",
    "(?s).*.*.*=.*", r"\C\C\C", r"\x{110000}", "*", "a**", "\\", "(?z)", "[z-a]", "(?i)" + "K" * 500, "a" * 512,
    "a" * 513,
]  # fmt: skip

TEXTS: list[str] = [
    "", "a", "a" * 30 + "!", "a" * 1_000, "ab" * 500 + "c", "ä" * 512, "\N{GRINNING FACE}" * 256, "a" * 50_000 + "!",
    "ab" * 25_000, "ä" * 25_000, "aabbabab" * 12_500, "z" + "a" * 99_999, "Kk\N{KELVIN SIGN}" * 10_000, "a" * SIZE,
    "\ud800" * 1_000, "\x00" * 1_000, "a\n" * 5_000, "1," * 10_000 + "x",
]  # fmt: skip

#: Bodies of a mebibyte that a page shows.
PAGES: list[bytes] = [
    b"x" * 2**20, b"\xff" * 2**20, b'"' + b"x" * 2**20 + b'"', b"[" * 60 + b"1," * 2**19 + b"1" + b"]" * 60,
    b"[" * 2**20, b'{"a":' * 10_000,
]  # fmt: skip
