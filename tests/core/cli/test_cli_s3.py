"""Backups in S3-compatible storage: the signature by its published example, and by a storage that verifies it."""

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cli_runner import run_process

from facho.core.cli.s3 import S3Account, authorization, split_target, store
from facho.core.product import BAD_CONFIGURATION, OperatorError
from servers.s3 import S3Storage, private_s3

# Of the vendor's documentation: "Authenticating Requests", the example of a PUT.
EXAMPLE = S3Account("", "us-east-1", "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
CONTENT = hashlib.sha256(b"Welcome to Amazon S3.").hexdigest()


def test_the_signature_is_that_of_the_published_example() -> None:
    headers = {
        "date": "Fri, 24 May 2013 00:00:00 GMT",
        "host": "examplebucket.s3.amazonaws.com",
        "x-amz-content-sha256": CONTENT,
        "x-amz-date": "20130524T000000Z",
        "x-amz-storage-class": "REDUCED_REDUNDANCY",
    }

    signed = authorization(EXAMPLE, "/test%24file.text", headers)

    assert signed.endswith("Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd")


@pytest.fixture(scope="module")
def storage() -> Iterator[S3Storage]:
    with private_s3() as storage:
        yield storage


@pytest.fixture
def environ(product_environ: dict[str, str], made_database: None, storage: S3Storage, tmp_path: Path) -> dict[str, str]:
    """A product whose settings name the storage."""
    (tmp_path / "s3-keys").write_text(f"{storage.access_key}\n{storage.secret_key}\n")
    own = {
        "DATABASE_URL": "",
        "FACHO_LANGUAGE": "en",
        "FACHO_S3_ENDPOINT": storage.url,
        "FACHO_S3_KEYS_FILE": str(tmp_path / "s3-keys"),
    }
    run_process({**product_environ, **own}, "migrate")
    return {**product_environ, **own}


def test_a_backup_arrives_as_it_is(environ: dict[str, str], storage: S3Storage, tmp_path: Path) -> None:
    """The storage computes the signature again from what came, and S3's own client reads it back."""
    done = run_process(environ, "backup", str(tmp_path / "one day.facho"), "--to", "s3://backups/facho/")

    assert (done.status, done.err) == (0, "")
    assert "copied to s3://backups/facho/one day.facho" in done.out
    assert storage.kept() == {"facho/one day.facho": (tmp_path / "one day.facho").read_bytes()}


@pytest.mark.parametrize(
    ("change", "target", "code"),
    [
        ({"secret": "canary-7f3a"}, "s3://backups/x", "403 SignatureDoesNotMatch"),
        ({"access": "CANARY7F3A"}, "s3://backups/x", "403 InvalidAccessKeyId"),
        ({}, "s3://no-such-bucket/x", "404 NoSuchBucket"),
    ],
)
def test_a_refusal_is_named_without_a_key_and_the_file_stays(
    environ: dict[str, str], storage: S3Storage, tmp_path: Path, change: dict[str, str], target: str, code: str
) -> None:
    before = storage.kept()
    keys = (change.get("access", storage.access_key), change.get("secret", storage.secret_key))
    (tmp_path / "s3-keys").write_text(" ".join(keys))

    done = run_process(environ, "backup", str(tmp_path / "x.facho"), "--to", target)

    assert (done.status, storage.kept()) == (1, before)
    assert done.err == f"facho: The storage refused the backup: {code}.\n"
    assert (tmp_path / "x.facho").stat().st_size > 0


@pytest.mark.parametrize("key", ["plain", "ñandú año.facho", "a+b&c=d;e,f@g:h$i(j)*'!~_-.", "%41/%2F", "two//slashes"])
def test_every_letter_of_a_name_is_signed_as_the_storage_reads_it(storage: S3Storage, tmp_path: Path, key: str) -> None:
    account = S3Account(storage.url, "us-east-1", storage.access_key, storage.secret_key)
    (tmp_path / "x").write_bytes(key.encode())

    store(tmp_path / "x", f"s3://backups/{key.replace(' ', '_')}", account, now=datetime.now(UTC))

    assert storage.kept()[key.replace(" ", "_")] == key.encode()


def test_settings_that_are_missing_are_named_before_anything_is_written(
    environ: dict[str, str], tmp_path: Path
) -> None:
    without = {**environ, "FACHO_S3_ENDPOINT": ""}

    done = run_process(without, "backup", str(tmp_path / "x.facho"), "--to", "s3://backups/x")

    assert (done.status, (tmp_path / "x.facho").exists()) == (BAD_CONFIGURATION, False)
    assert "FACHO_S3_ENDPOINT" in done.err


@pytest.mark.parametrize("text", ["s3://", "s3://UPPER/x", "https://backups/x", "s3://b", "s3://../x"])
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(OperatorError):
        split_target(text, name="x.facho")


def test_a_folder_gets_the_name_of_the_file() -> None:
    assert split_target("s3://backups/", name="x.facho") == ("backups", "x.facho")
    assert split_target("s3://backups/a/b", name="x.facho") == ("backups", "a/b")
