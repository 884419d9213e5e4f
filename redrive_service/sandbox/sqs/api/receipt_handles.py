"""Make and read receipt handles.

A handle has the queue's tag, the message's key, the number of the receive, the message's id, and a checksum of these.
So the queue can distinguish an old handle (its message was received again or deleted) from a text that is no handle.
The call log can name the message of a handle.
"""

import zlib
from typing import Final

KEY_WIDTH: Final = 12
KEY_FORM: Final = f"%0{KEY_WIDTH}x"
_PREFIX: Final = "AQEB"
_TAG_WIDTH: Final = 8
_KEY_START: Final = len(_PREFIX) + _TAG_WIDTH
_KEY_END: Final = _KEY_START + KEY_WIDTH
# The place of the message's key in a valid handle.
KEY_PLACE: Final = slice(_KEY_START, _KEY_END)
_ID_START: Final = _KEY_END + KEY_WIDTH
_ID_END: Final = _ID_START + 36
_CHECK_WIDTH: Final = 8
_LENGTH: Final = _ID_END + _CHECK_WIDTH
_HEAD_FORM: Final = f"{_PREFIX}%s%s{KEY_FORM}%s"
_CHECK_FORM: Final = f"%0{_CHECK_WIDTH}x"


def handle_for(tag: str, key: str, receive: int, message_id: str) -> str:
    """Return a receipt handle. `tag`: the queue's tag. `key`: the message's key. `receive`: number of the receive."""
    head = _HEAD_FORM % (tag, key, receive, message_id)
    return head + _CHECK_FORM % zlib.crc32(head.encode())


def message_id_in(handle: str) -> str | None:
    """Return the id of the handle's message; None: the text is no receipt handle."""
    return handle[_ID_START:_ID_END] if is_of("", handle) else None


def is_of(tag: str, handle: str) -> bool:
    """Return whether the queue with this tag created this handle."""
    if len(handle) != _LENGTH or not handle.isascii() or not handle.startswith(_PREFIX + tag):
        return False
    head, check = handle[:-_CHECK_WIDTH], handle[-_CHECK_WIDTH:]
    return _CHECK_FORM % zlib.crc32(head.encode()) == check
