"""Import a framework without the log lines of its C++ side.

It writes them before any log level is in force.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quietly() -> Iterator[None]:
    """Swallow what is written to file descriptor 2 inside the block.

    Where the block raises, it is shown after all.

    with quietly():
        import tensorflow as tf
    """
    sys.stderr.flush()
    stderr_copy = os.dup(2)
    try:
        with tempfile.TemporaryFile() as caught:
            os.dup2(caught.fileno(), 2)
            try:
                yield
            except BaseException:
                os.dup2(stderr_copy, 2)
                caught.seek(0)
                os.write(2, caught.read())
                raise
            finally:
                os.dup2(stderr_copy, 2)
    finally:
        os.close(stderr_copy)
