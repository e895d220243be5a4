"""Runs a command: opens what it needs, loads its module, and writes an expected failure in a sentence a line."""

import gc
import logging
import os
import sys
import traceback
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from importlib import import_module

from django.conf import settings
from django.db import Error

from facho.core.cli.parser import Needs
from facho.core.env import read_environment
from facho.core.product import (
    FAILED,
    OperatorError,
    bring_up_to_date,
    database_failure,
    open_existing,
    say,
    set_up_django,
)
from facho.infrastructure.secrets import UndecryptableSecret


def run_command(arguments: Namespace) -> int:
    try:
        status = _run(arguments)
        sys.stdout.flush()
    except OperatorError as error:
        # The lines of what starts a process go where its log goes; those of other commands are read by a person.
        tell = say if arguments.needs is Needs.NOTHING else partial(print, file=sys.stderr)
        for line in error.lines:
            tell(f"facho: {line}")
        if read_environment(os.environ)["FACHO_LOG_LEVEL"] == "DEBUG":
            traceback.print_exception(error, file=sys.stderr)
        return error.status
    except BrokenPipeError:
        # The reader of a pipe left early, as with `facho olt list | head`. The interpreter flushes once more at its
        # exit, which would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except KeyboardInterrupt:
        return FAILED
    return status


def _run(arguments: Namespace) -> int:
    if arguments.needs is Needs.DJANGO:
        set_up_django()
    elif arguments.needs is Needs.DATABASE:
        open_existing()
        if settings.ENVIRONMENT["FACHO_LOG_LEVEL"] != "DEBUG":
            # Standard error is for the command's own words.
            logging.getLogger("facho").setLevel(logging.WARNING)
        bring_up_to_date()
    module, _, function = arguments.handler.partition(".")
    # Loaded now: it needs a Django that is set up, and no other command's module is loaded along.
    handler: Callable[[Namespace], int | None] = getattr(import_module(f"facho.core.cli.{module}"), function)
    gc.freeze()
    gc.enable()
    if arguments.needs is not Needs.DATABASE:
        return handler(arguments) or 0
    try:
        return handler(arguments) or 0
    except Error as error:
        raise database_failure(error) from error
    except UndecryptableSecret as error:
        raise OperatorError(str(error)) from error
