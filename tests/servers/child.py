"""What every process that tests start needs: an end when the test run ends, and often a port."""

import ctypes
import signal
import socket

PR_SET_PDEATHSIG = 1


def end_with_parent(number: signal.Signals = signal.SIGKILL) -> None:
    """Ask the kernel to send this process a signal when its parent dies, even by SIGKILL."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number)


def free_port(kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    """Find a port that nobody has now; somebody else may take it before it is used."""
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
