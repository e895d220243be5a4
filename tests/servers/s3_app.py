"""Moto's storage as a process: says where it is and which keys it takes, then serves until it is ended."""

import json

from moto import settings
from moto.iam.models import iam_backends
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.s3.models import s3_backends
from werkzeug.serving import make_server

# The account that moto takes for everybody's.
ACCOUNT, PARTITION, REGION = "123456789012", "aws", "us-east-1"
PERSON, BUCKET = "facho", "backups"
MAY = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}


def main() -> None:
    # Every request is to be signed.
    settings.INITIAL_NO_AUTH_ACTION_COUNT = 0
    people = iam_backends[ACCOUNT][PARTITION]
    people.create_user(REGION, PERSON)
    people.put_user_policy(PERSON, "all", json.dumps(MAY))
    key = people.create_access_key(PERSON)
    s3_backends[ACCOUNT][PARTITION].create_bucket(BUCKET, REGION)
    server = make_server("127.0.0.1", 0, DomainDispatcherApplication(create_backend_app), threaded=True)
    reported = {"port": server.server_port, "access_key": key.access_key_id, "secret_key": key.secret_access_key}
    print(json.dumps(reported), flush=True)  # noqa: T201 it is how the test hears of it
    server.serve_forever()


if __name__ == "__main__":
    main()
