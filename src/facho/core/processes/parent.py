"""Ends a child when its parent is gone, so that even `kill -9` of the parent leaves nothing behind."""

import os
import signal
import threading

STDIN = 0


def exit_with_parent() -> None:
    """Stop this process as SIGTERM would, once the pipe that the parent holds on our stdin closes."""
    threading.Thread(target=_wait_for_end, name="parent", daemon=True).start()


def _wait_for_end() -> None:
    # The bare descriptor: a buffered reader would hold a lock that the interpreter wants at its exit.
    while os.read(STDIN, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
