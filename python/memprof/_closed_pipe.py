"""What becomes of output that nobody reads any more, as that of `memprof ... | head`."""

from __future__ import annotations

import os
import sys


def die_of_closed_pipes() -> None:
    """Gives SIGPIPE its default back, which Python changes and a program that this process becomes would inherit."""
    import signal

    signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def discard_output() -> None:
    """Has the standard output go nowhere from now on, so that the end of the process does not complain either."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
