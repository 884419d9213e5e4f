"""Attributes are packed and unpacked unchanged."""

from __future__ import annotations

from reprocessing.domain.message.envelope import Attribute, pack_attributes, unpack_attributes


def test_attributes_are_packed_in_the_order_of_their_names() -> None:
    attributes = {"raw": Attribute("Binary", b"\xff"), "kind": Attribute("String", "ä")}
    packed = pack_attributes(attributes)
    assert packed == b'{"kind":["String","s","\\u00e4"],"raw":["Binary","b","/w=="]}'
    assert unpack_attributes(packed) == attributes
