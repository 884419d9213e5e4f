"""Trace contexts of W3C and X-Ray are read exactly, and anything else is no context."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprocessing.domain.message.trace_context import TraceContext, read_fields, read_traceparent, read_xray

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"
NUMBERS = (int(TRACE, 16), int(SPAN, 16))


@pytest.mark.parametrize(
    ("text", "flags"), [(PARENT, 1), (f" 00-{TRACE}-{SPAN}-00\t", 0), (f"cc-{TRACE}-{SPAN}-03-what-comes-later", 3)]
)
def test_a_valid_traceparent_is_read_with_its_flags(text: str, flags: int) -> None:
    assert read_traceparent(text) == TraceContext(*NUMBERS, flags)


@pytest.mark.parametrize(
    "text",
    [
        "", "x", PARENT.upper(), f"ff-{TRACE}-{SPAN}-01", f"{PARENT}-more", f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01", f"00-{TRACE}-{SPAN}", f"00-{TRACE}-{SPAN}-1", f"{PARENT}\n",
        f"cc-{TRACE}-{SPAN}-01-\n",
    ],
)  # fmt: skip
def test_another_traceparent_is_no_context(text: str) -> None:
    assert read_traceparent(text) is None


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("", ()),
        ("congo=t61rcWkgMzE, rojo=00f067aa0ba902b7", (("congo", "t61rcWkgMzE"), ("rojo", SPAN))),
        ("tenant@vendor=a b,,", (("tenant@vendor", "a b"),)),
        ("a=1,a=2", ()),
        ("a=1,B=2", ()),
        ("a=1\n,b=2", ()),
        (",".join(f"k{n}=v" for n in range(33)), ()),
        (f"a={'v' * 511}", ()),
    ],
)  # fmt: skip
def test_a_tracestate_is_read_whole_or_not_at_all(text: str, state: tuple[tuple[str, str], ...]) -> None:
    assert read_traceparent(PARENT, text) == TraceContext(*NUMBERS, 1, state)


def test_fields_of_another_type_are_no_context() -> None:
    assert read_fields({"traceparent": PARENT.encode()}) is None
    assert read_fields({"traceparent": PARENT, "tracestate": 1}) == TraceContext(*NUMBERS)
    assert read_fields({"tracestate": "a=1"}) is None


@pytest.mark.parametrize(("sampled", "flags"), [(";Sampled=1", 1), (";Sampled=0", 0), ("", 1), (";Sampled=?", 1)])
def test_an_x_ray_header_is_the_same_trace_in_another_spelling(sampled: str, flags: int) -> None:
    header = f"Self=1-67891234-12456789abcdef012345678;Root=1-{TRACE[:8]}-{TRACE[8:]};Parent={SPAN}{sampled}"
    assert read_xray(header) == TraceContext(*NUMBERS, flags)


@pytest.mark.parametrize(
    "header",
    ["", "Root=1-5759e988-bd862e3fe1be46a994272793", f"Parent={SPAN}", f"Root=2-{TRACE[:8]}-{TRACE[8:]};Parent={SPAN}",
     f"Root=1-{TRACE[:8]}-{TRACE[8:]};Parent={'0' * 16}", f"Root=1-{TRACE[:8]}-{TRACE[8:]};Parent={SPAN}\n;Parent=1"],
)  # fmt: skip
def test_an_x_ray_header_without_root_and_parent_is_no_context(header: str) -> None:
    assert read_xray(header) is None


@given(st.text(), st.text())
def test_no_text_raises(first: str, second: str) -> None:
    read_traceparent(first, second)
    read_xray(first)
    read_traceparent(PARENT, second)
