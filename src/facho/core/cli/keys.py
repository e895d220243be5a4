"""Gives every stored secret a new encryption key, while the product runs. Killed anywhere, it continues when run again.

The key file alone says how far it came: with several keys in it a rotation has begun, with one it is over. Every
process reads the file again when it changes, so none has to be stopped.
"""

import fcntl
import os
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.apps import apps
from django.conf import settings
from django.db import transaction
from django.db.models import ExpressionWrapper, F, Model, QuerySet, TextField, Value
from django.utils.translation import gettext as _

from facho.core.data_folder import DataFolder, replace_private
from facho.core.database import SQLITE_BUSY_SECONDS
from facho.core.env import Mode
from facho.core.product import OperatorError
from facho.infrastructure.secrets import SecretField

# Rows between which others get their turn to write.
BATCH = 200
# A process that encrypted just before the new key came may still wait to write.
SETTLE_SECONDS = SQLITE_BUSY_SECONDS + 10
FINISH = "facho keys rotate --finish"


class RotationRuns(Exception):
    """Another process of this machine changes the keys."""


class Survey(NamedTuple):
    """How many stored secrets are under the first key, under an older one, and under none that is known."""

    current: int = 0
    older: int = 0
    unreadable: int = 0


def rotate(arguments: Namespace) -> int:
    """Rotate in one step, or in two where several machines have to get the file in between."""
    folder: DataFolder = settings.DATA_FOLDER
    try:
        with alone(folder):
            return _rotate(folder, is_second_step=arguments.finish)
    except RotationRuns as error:
        raise OperatorError(_("Another `facho keys rotate` is running: wait until it ends.")) from error
    except OSError as error:
        text = _("The key file cannot be written: %(path)s: %(error)s. Nothing is lost: run it again as its owner.")
        names = {"path": error.filename or folder.encryption_keys, "error": error.strerror}
        raise OperatorError(text % names) from error


def _rotate(folder: DataFolder, *, is_second_step: bool) -> int:
    path, has_begun = folder.encryption_keys, len(folder.read_encryption_keys()) > 1
    names = {"path": path, "command": FINISH}
    if is_second_step and not has_begun:
        print(_("There is nothing to finish: %s holds one key.") % path)
        return 0
    if settings.FACHO_MODE is Mode.DISTRIBUTED and not is_second_step:
        if has_begun:
            raise OperatorError(
                _("A key rotation is in progress: copy %(path)s to every machine, then run `%(command)s`.") % names
            )
        begin(folder)
        print(_("%(path)s has a new key: copy it to every machine, then run `%(command)s`.") % names)
        return 0
    if has_begun:
        print(_("continuing the rotation already in progress"), flush=True)
    else:
        begin(folder)
        print(_("made a new key"), flush=True)
    found = give_everything_the_first_key(folder, wait=_wait)
    try:
        retire(folder)
    except OSError as error:
        text = _("Every secret uses the first key, but %(path)s cannot be written: %(error)s. Remove its other lines.")
        raise OperatorError(text % {"path": path, "error": error.strerror}) from error
    print(_("%(n)s secrets encrypted again; %(path)s holds one key") % {"n": found.older, "path": path})
    if found.unreadable:
        text = _("%s secrets cannot be decrypted with any key: enter them again.")
        print("facho: " + text % found.unreadable, file=sys.stderr)
    return 0


def _wait(seconds: float) -> None:
    if seconds:
        print(_("waiting %s s for writers that still have the old key") % round(seconds), flush=True)
        time.sleep(seconds)


@contextmanager
def alone(folder: DataFolder) -> Iterator[None]:
    """Keep two commands from making a key each; RotationRuns for the second."""
    # The folder itself: a file of its own would be root's after root has run this.
    descriptor = os.open(folder.path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise RotationRuns from error
    finally:
        os.close(descriptor)


def begin(folder: DataFolder) -> None:
    """Put a new key above the old one: it encrypts from now on, the old one still decrypts."""
    keys = folder.read_encryption_keys()
    replace_private(folder.encryption_keys, [Fernet.generate_key().decode(), *keys])


def give_everything_the_first_key(folder: DataFolder, *, wait: Callable[[float], None]) -> Survey:
    """Give every secret the first key; returns what was under which. What no key reads stays as it is."""
    keys = folder.read_encryption_keys()
    found = encrypt_anew(keys)
    age = time.time() - folder.encryption_keys.stat().st_mtime
    wait(min(max(SETTLE_SECONDS - age, 0.0), SETTLE_SECONDS))
    while encrypt_anew(keys).older:
        pass
    return found


def retire(folder: DataFolder) -> None:
    """Leave the first key alone in the file; call it when nothing is under another one."""
    replace_private(folder.encryption_keys, folder.read_encryption_keys()[:1])


def encrypt_anew(keys: Sequence[str]) -> Survey:
    """Give the first key to every secret that has another one of these."""
    found = []
    for model, column in secret_columns():
        for batch in _batches(model, column):
            judged, rewritten = _judge(batch, keys)
            _write(model, column, rewritten)
            found.append(judged)
    return _added_up(found)


def survey(keys: Sequence[str]) -> Survey:
    return _added_up(_judge(batch, keys)[0] for model, column in secret_columns() for batch in _batches(model, column))


def _added_up(found: Iterable[Survey]) -> Survey:
    return Survey(*map(sum, zip(Survey(), *found, strict=True)))


def secret_columns() -> list[tuple[type[Model], str]]:
    """Find every encrypted column of every app by its kind, so that a new one is never forgotten."""
    return [
        (model, field.attname)
        for model in apps.get_models(include_auto_created=True)
        for field in model._meta.local_concrete_fields
        if isinstance(field, SecretField)
    ]


_Row = tuple[int, str]


def _batches(model: type[Model], column: str) -> Iterator[list[_Row]]:
    last = 0
    while batch := list(_stored(model, column).filter(pk__gt=last).values_list("pk", "stored")[:BATCH]):
        yield batch
        last = batch[-1][0]


def _stored(model: type[Model], column: str) -> "QuerySet[Model]":
    as_text = ExpressionWrapper(F(column), output_field=TextField())
    rows: QuerySet[Model] = model._base_manager.annotate(stored=as_text)
    return rows.exclude(stored="").order_by("pk")


def _judge(batch: Sequence[_Row], keys: Sequence[str]) -> tuple[Survey, list[tuple[int, str, str]]]:
    newest, every = Fernet(keys[0]), MultiFernet([Fernet(key) for key in keys])
    rewritten: list[tuple[int, str, str]] = []
    current = unreadable = 0
    for pk, stored in batch:
        try:
            newest.decrypt(stored.encode())
            current += 1
        except InvalidToken:
            try:
                rewritten.append((pk, stored, every.rotate(stored.encode()).decode()))
            except InvalidToken:
                unreadable += 1
    return Survey(current, len(rewritten), unreadable), rewritten


def _write(model: type[Model], column: str, rewritten: Sequence[tuple[int, str, str]]) -> None:
    if not rewritten:
        return
    with transaction.atomic():
        for pk, before, after in rewritten:
            # Somebody may have entered another one meanwhile: theirs stays.
            row = _stored(model, column).filter(pk=pk, stored=before).order_by()
            row.update(**{column: Value(after, output_field=TextField())})
