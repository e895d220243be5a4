"""Backups in S3-compatible storage: the signature by its published example, and a server that checks what it gets."""

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cli_runner import run_process

from facho.core.cli.s3 import S3Account, authorization, split_target
from facho.core.product import BAD_CONFIGURATION, OperatorError

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


class Storage(ThreadingHTTPServer):
    """Keeps what is put, if its signature is right."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.kept: dict[str, bytes] = {}


class Handler(BaseHTTPRequestHandler):
    server: Storage

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        names = ("host", "x-amz-content-sha256", "x-amz-date")
        headers = {name: self.headers[name] for name in names}
        account = S3Account("", "us-east-1", "access-1", "secret-1")
        is_right = self.headers["authorization"] == authorization(account, self.path, headers)
        is_whole = hashlib.sha256(body).hexdigest() == headers["x-amz-content-sha256"]
        if is_right and is_whole:
            self.server.kept[self.path] = body
        answer = b"" if is_right and is_whole else b"<Error><Code>SignatureDoesNotMatch</Code></Error>"
        self.send_response(200 if is_right and is_whole else 403)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_words: object) -> None:
        """Stay quiet."""


@pytest.fixture
def storage() -> Iterator[Storage]:
    """A storage on a port of its own."""
    with Storage() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def environ(product_environ: dict[str, str], made_database: None, storage: Storage, tmp_path: Path) -> dict[str, str]:
    """A product whose settings name the storage."""
    (tmp_path / "s3-keys").write_text("access-1\nsecret-1\n")
    own = {
        "DATABASE_URL": "",
        "FACHO_LANGUAGE": "en",
        "FACHO_S3_ENDPOINT": f"http://127.0.0.1:{storage.server_port}",
        "FACHO_S3_KEYS_FILE": str(tmp_path / "s3-keys"),
    }
    run_process({**product_environ, **own}, "migrate")
    return {**product_environ, **own}


def test_a_backup_arrives_as_it_is(environ: dict[str, str], storage: Storage, tmp_path: Path) -> None:
    done = run_process(environ, "backup", str(tmp_path / "one day.facho"), "--to", "s3://backups/facho/")

    assert (done.status, done.err) == (0, "")
    assert "copied to s3://backups/facho/one day.facho" in done.out
    assert storage.kept == {"/backups/facho/one%20day.facho": (tmp_path / "one day.facho").read_bytes()}


def test_a_refusal_is_named_without_a_key_and_the_file_stays(
    environ: dict[str, str], storage: Storage, tmp_path: Path
) -> None:
    (tmp_path / "s3-keys").write_text("access-1 canary-7f3a")

    done = run_process(environ, "backup", str(tmp_path / "x.facho"), "--to", "s3://backups/x")

    assert (done.status, storage.kept) == (1, {})
    assert done.err == "facho: The storage refused the backup: 403 SignatureDoesNotMatch.\n"
    assert (tmp_path / "x.facho").stat().st_size > 0


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
