"""A private storage in the form of S3: moto's, which verifies each signature with the library of S3's maker."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import boto3
from botocore.config import Config

from servers.child import end_with_parent
from servers.s3_app import BUCKET, REGION

TESTS = Path(__file__).resolve().parents[1]
STOP_SECONDS = 10


@dataclass(frozen=True, slots=True)
class S3Storage:
    """A running storage with the bucket `backups`, and the keys that may use it."""

    port: int
    access_key: str
    secret_key: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def kept(self) -> dict[str, bytes]:
        """Read by S3's own client what the bucket has, by key."""
        client = boto3.client(
            "s3",
            endpoint_url=self.url,
            region_name=REGION,
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
            config=Config(proxies={}, s3={"addressing_style": "path"}),
        )
        found = client.list_objects_v2(Bucket=BUCKET).get("Contents", [])
        kept = {each["Key"]: client.get_object(Bucket=BUCKET, Key=each["Key"])["Body"].read() for each in found}
        client.close()
        return kept


@contextmanager
def private_s3() -> Iterator[S3Storage]:
    """Run a storage on a free loopback port."""
    process = subprocess.Popen(
        [sys.executable, "-m", "servers.s3_app"],
        cwd=TESTS,
        env=os.environ | {"PYTHONWARNINGS": "ignore", "PYTHONPATH": str(TESTS)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        process_group=0,
        preexec_fn=end_with_parent,
    )
    assert process.stdout is not None
    try:
        yield S3Storage(**json.loads(process.stdout.readline()))
    finally:
        process.kill()
        process.wait(STOP_SECONDS)
        process.stdout.close()
