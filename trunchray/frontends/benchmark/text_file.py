"""Authored data as text: UTF-8, strictly."""

from __future__ import annotations

import codecs

_CHUNK = 1 << 20


def not_utf8(content: bytes) -> int | None:
    """The line, from 1, of the first byte that is not part of UTF-8 text; None when all of it is.

    Takes the memory of a small part of the text only.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    view = memoryview(content)
    for start in range(0, max(len(content), 1), _CHUNK):
        kept = len(decoder.getstate()[0])
        try:
            decoder.decode(view[start : start + _CHUNK], final=start + _CHUNK >= len(content))
        except UnicodeDecodeError as e:
            return content.count(b"\n", 0, start - kept + e.start) + 1
    return None
