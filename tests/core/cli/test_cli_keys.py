"""`facho keys rotate`: every secret gets the new key and the old one goes, whatever is killed in between."""

import errno
import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from cli_runner import CANARY, Command
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.db import connection
from pytest_django import Settings

from alerts.outbox_rows import make_channel
from facho.core.cli import keys as key_rotation
from facho.core.cli.doctor import Verdict, _credentials
from facho.core.cli.keys import _rotate
from facho.core.data_folder import STAGE_PREFIX, DataFolder, KeyFile, write_private
from facho.core.env import Mode
from facho.core.product import OperatorError
from facho.hosts.models import Olt
from factories import give_secrets, make_olt

OLTS = 100
COLUMNS = {"hosts_olt": ("community", "v3_auth_key", "v3_priv_key"), "alerts_alertchannel": ("url", "signing_key")}


@pytest.fixture
def folder(settings: Settings, tmp_path: Path) -> DataFolder:
    """A key file of the test's own, which the test database is used with."""
    made = DataFolder(tmp_path, tmp_path / "secret-key", tmp_path / "encryption-keys")
    write_private(made.encryption_keys, Fernet.generate_key().decode())
    settings.DATA_FOLDER = made
    settings.FACHO_ENCRYPTION_KEYS = KeyFile(made.encryption_keys)
    return made


def rotate_through(folder: DataFolder, wait: Callable[[float], None] = lambda _: None) -> key_rotation.Survey:
    found = key_rotation.give_everything_the_first_key(folder, wait=wait)
    key_rotation.retire(folder)
    return found


def age(path: Path) -> None:
    """Let the file be as old as if everybody had read it long ago."""
    os.utime(path, (0, 0))


def stored() -> Iterator[str]:
    with connection.cursor() as cursor:
        for table, columns in COLUMNS.items():
            cursor.execute(f"SELECT {', '.join(columns)} FROM {table}")  # noqa: S608 our own names
            yield from (cell for row in cursor.fetchall() for cell in row if cell)


def opens(key: str, cipher: str) -> bool:
    try:
        Fernet(key).decrypt(cipher.encode())
    except InvalidToken:
        return False
    return True


@pytest.mark.django_db
def test_every_encrypted_column_gets_the_new_key_and_the_old_one_goes(folder: DataFolder) -> None:
    make_channel("ntfys://topic")
    give_secrets([make_olt() for _ in range(3)], v3_auth_key="a-canary-key", v3_priv_key="another-key")
    [old] = folder.read_encryption_keys()

    key_rotation.begin(folder)
    found = rotate_through(folder)

    [new] = folder.read_encryption_keys()
    assert (found.older, found.unreadable) == (len(list(stored())), 0)
    assert old != new
    assert all(opens(new, cipher) and not opens(old, cipher) for cipher in stored())
    assert {olt.community.reveal_for(str(olt.place)) for olt in Olt.objects.all()} == {"public"}


def test_no_encrypted_column_is_forgotten() -> None:
    found = {(model._meta.db_table, column) for model, column in key_rotation.secret_columns()}

    assert found >= {(table, column) for table, columns in COLUMNS.items() for column in columns}


@pytest.mark.django_db
def test_what_is_entered_meanwhile_stays(folder: DataFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    olt = make_olt()
    key_rotation.begin(folder)
    write = key_rotation._write

    def enter_first(*arguments: object) -> None:
        give_secrets([olt], community="entered-meanwhile")
        write(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(key_rotation, "_write", enter_first)
    rotate_through(folder)

    assert Olt.objects.get().community.reveal() == "entered-meanwhile"


@pytest.mark.django_db
def test_who_wrote_with_the_old_key_while_it_was_waited_is_served_too(folder: DataFolder, settings: Settings) -> None:
    make_olt()
    slow, [old] = make_olt(), folder.read_encryption_keys()
    key_rotation.begin(folder)

    def write_late(_seconds: float) -> None:
        current, settings.FACHO_ENCRYPTION_KEYS = settings.FACHO_ENCRYPTION_KEYS, (old,)
        give_secrets([slow], community="written-late")
        settings.FACHO_ENCRYPTION_KEYS = current

    rotate_through(folder, wait=write_late)

    assert Olt.objects.get(pk=slow.pk).community.reveal() == "written-late"


@pytest.mark.django_db
def test_a_secret_of_no_key_is_left_and_reported(folder: DataFolder, capsys: pytest.CaptureFixture[str]) -> None:
    make_olt()
    folder.encryption_keys.write_text(Fernet.generate_key().decode())
    key_rotation.begin(folder)
    age(folder.encryption_keys)

    _rotate(folder, is_second_step=False)

    assert "1 secrets cannot be decrypted with any key" in capsys.readouterr().err
    assert _credentials().verdict is Verdict.ERROR


@pytest.mark.django_db
def test_several_machines_get_the_file_in_between(
    folder: DataFolder, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """The machine with the old file alone reads everything until the second step."""
    make_olt()
    settings.FACHO_MODE = Mode.DISTRIBUTED
    [old] = folder.read_encryption_keys()

    _rotate(folder, is_second_step=False)
    with pytest.raises(OperatorError, match=r"copy .* to every machine"):
        _rotate(folder, is_second_step=False)
    was_readable = all(opens(old, cipher) for cipher in stored())
    doubted = _credentials()
    age(folder.encryption_keys)
    _rotate(folder, is_second_step=True)
    _rotate(folder, is_second_step=True)

    [new] = folder.read_encryption_keys()
    assert was_readable
    assert doubted.verdict is Verdict.WARNING
    assert all(opens(new, cipher) for cipher in stored())
    assert "There is nothing to finish" in capsys.readouterr().out


def test_the_file_keeps_its_mode_and_its_old_content_until_the_new_one_is_whole(folder: DataFolder) -> None:
    folder.encryption_keys.chmod(0o640)
    before = folder.encryption_keys.read_text()

    key_rotation.begin(folder)

    assert folder.encryption_keys.read_text().endswith(before)
    assert folder.encryption_keys.stat().st_mode & 0o777 == 0o640
    assert not list(folder.path.glob(f"{STAGE_PREFIX}*"))


@pytest.mark.django_db
def test_a_key_file_that_cannot_be_written_is_reported_when_everything_has_the_first_key(
    folder: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container gets the file read-only."""
    make_olt()
    key_rotation.begin(folder)
    age(folder.encryption_keys)

    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(key_rotation, "replace_private", refuse)
    with pytest.raises(OperatorError, match=r"cannot be written: Read-only file system\. Remove its other lines"):
        _rotate(folder, is_second_step=True)

    assert all(opens(folder.read_encryption_keys()[0], cipher) for cipher in stored())


@pytest.mark.any_database
@pytest.mark.usefixtures("made_database")
@pytest.mark.parametrize("kills", [2, pytest.param(12, marks=pytest.mark.thorough)])
def test_killed_at_any_moment_nothing_is_lost_and_it_goes_on(
    facho_process: Command, product_environ: dict[str, str], tmp_path: Path, kills: int
) -> None:
    """kill -9 at random moments of the rotation; in between every secret is readable with the keys of the file."""
    chance, data = random.Random(14), Path(product_environ["FACHO_DATA_DIR"])  # noqa: S311 repeatable
    rows = "\n".join(f"olt-{n},127.0.1.{n % 250 + 1},{10_000 + n},,2c,{CANARY}-{n}" for n in range(OLTS))
    (tmp_path / "olts.csv").write_text(f"name,host,port,vendor,version,community\n{rows}\n")
    assert facho_process("olt", "import", str(tmp_path / "olts.csv")).status == 0
    keys_file = data / "encryption-keys"
    [old] = keys_file.read_text().split()

    for _ in range(kills):
        rotation = subprocess.Popen(
            [sys.executable, "-m", "facho.core.cli.main", "keys", "rotate"], env=product_environ, stdout=subprocess.PIPE
        )
        assert rotation.stdout is not None
        first = rotation.stdout.readline()
        try:
            rotation.wait(chance.uniform(0, 0.3) if first else 60)
        except subprocess.TimeoutExpired:
            rotation.send_signal(signal.SIGKILL)
            rotation.wait(60)
        rotation.stdout.close()
        assert readable(data) == OLTS
        age(keys_file)
    done = facho_process("keys", "rotate")

    assert (done.status, len(keys_file.read_text().split())) == (0, 1)
    assert keys_file.read_text().split() != [old]
    assert keys_file.stat().st_mode & 0o777 == 0o600
    assert readable(data) == OLTS


def readable(data: Path) -> int:
    """Count the communities that the keys of the file open, as a stranger with both files would."""
    keys = MultiFernet([Fernet(key) for key in (data / "encryption-keys").read_text().split()])
    with closing(sqlite3.connect(data / "facho.sqlite3")) as database:
        ciphers = [cipher for (cipher,) in database.execute("SELECT community FROM hosts_olt ORDER BY id")]
    return sum(keys.decrypt(cipher.encode()).decode().split("\0")[-1].startswith(CANARY) for cipher in ciphers)
