"""Asks the kernel which bytes of a file are in the page cache.

File systems that do not support this query (tmpfs, some network file systems) keep their bytes in
memory, or cannot tell. Their bytes count as cached, and a read waits for the disk if it must.
"""

import errno
import os

from tidelog.model.disk import File, FileSlice, NotCached

_PROBE = bytearray(1)


def is_cached(number: int, position: int, length: int) -> bool:
    """Whether the first and the last of these bytes are cached; True if unknown.

    The bytes between them may be missing. A later read of those bytes waits, but does not fail.
    """
    try:
        for probed in (position, position + length - 1):
            os.preadv(number, [_PROBE], probed, os.RWF_NOWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def read_cached(file: File, number: int, position: int, length: int) -> bytes:
    """Read bytes that are cached; raises NotCached at the first byte that is not."""
    buffer = bytearray(length)
    try:
        count = os.preadv(number, [buffer], position, os.RWF_NOWAIT)
    except BlockingIOError:
        raise NotCached(FileSlice(file, position, length)) from None
    except OSError as failure:
        if failure.errno not in (errno.EOPNOTSUPP, errno.ENOSYS):
            raise
        count = os.preadv(number, [buffer], position)
    if count < length and position + count < file.size:
        raise NotCached(FileSlice(file, position + count, length - count))
    return bytes(memoryview(buffer)[:count])
