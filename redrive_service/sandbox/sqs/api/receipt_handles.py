"""Make and read receipt handles.

A handle contains the queue's tag (8 random hexadecimal digits), the number of the message in the queue (its key), the
number of the receive, the message id, and a checksum. So the queue can distinguish an old handle, whose message was
received again or deleted, from a text that is no handle. The call log can name the message of a handle.
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
    """Return the receipt handle of a receive.

    `tag` identifies the queue, `key` the message in the queue, and `receive` is the number of the receive.
    """
    head = _HEAD_FORM % (tag, key, receive, message_id)
    return head + _CHECK_FORM % zlib.crc32(head.encode())


def message_id_in(handle: str) -> str | None:
    """Return the message id in a receipt handle, or None if the text is no receipt handle."""
    return handle[_ID_START:_ID_END] if is_of("", handle) else None


def is_of(tag: str, handle: str) -> bool:
    """Return whether the queue with this tag created this handle."""
    if len(handle) != _LENGTH or not handle.isascii() or not handle.startswith(_PREFIX + tag):
        return False
    head, check = handle[:-_CHECK_WIDTH], handle[-_CHECK_WIDTH:]
    return _CHECK_FORM % zlib.crc32(head.encode()) == check
