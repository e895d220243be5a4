"""Starts a child of `facho run`: sets Django up, and only then loads the module that is named by the first argument.

Garbage is not collected meanwhile: there is none, and it would take a seventh of the time.
"""

import gc
import sys
from importlib import import_module

from facho.core.processes.supervisor import exit_with_parent, share_arenas
from facho.core.product import set_up_django

if __name__ == "__main__":
    module, *arguments = sys.argv[1:]
    share_arenas()
    exit_with_parent()
    gc.disable()
    set_up_django()
    child = import_module(module)
    gc.enable()
    child.main(*arguments)
