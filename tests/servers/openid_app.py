"""An OpenID provider from a package, and in front of it what a hostile or broken one would do.

The provider signs with RSA and keeps each code for one use. It looks neither at PKCE nor at secrets: that is done here.
"""

import base64
import hashlib
import hmac
import json
import sys
import threading
from typing import Any
from urllib.parse import quote

import flask
import oidc_provider_mock
import werkzeug.serving
from joserfc import jwt
from joserfc.jwk import RSAKey

from servers.openid_provider import CLIENT, CLIENT_SECRET


class Spoiled:
    """What stands in front of the provider's application."""

    def __init__(self) -> None:
        self._how = ""
        self._challenges: list[str] = []

    def before(self) -> Any:
        """Answer in the provider's place where it is too kind."""
        request = flask.request
        if request.path == "/spoil":
            self._how = request.get_json()["how"]
            return "", 204
        if self._how == "hanging":
            threading.Event().wait()
        if request.path == "/oauth2/authorize":
            self._challenges += request.args.getlist("code_challenge")
        if request.path == "/oauth2/token" and not self._proves():
            return {"error": "invalid_grant"}, 400
        return None

    def _proves(self) -> bool:
        verifier = flask.request.form.get("code_verifier", "")
        digest = _plain(hashlib.sha256(verifier.encode()).digest())
        pair = f"{quote(CLIENT, safe='')}:{quote(CLIENT_SECRET, safe='')}"
        basic = f"Basic {base64.b64encode(pair.encode()).decode()}"
        return digest in self._challenges and flask.request.headers.get("Authorization") == basic

    def after(self, answer: Any) -> Any:
        """Change the token as asked for; all but `signature`, `key`, `none` and `hmac` are signed by the right key."""
        if flask.request.path == "/oauth2/token" and answer.status_code == 200 and self._how:
            content = answer.get_json()
            content["id_token"] = self._changed(content["id_token"])
            answer.set_data(json.dumps(content))
        return answer

    def _changed(self, token: str) -> str:
        key = RSAKey.import_key(flask.g.oidc_provider_mock_storage.jwk.as_dict(is_private=True))
        head, body, signature = token.split(".")
        claims = json.loads(base64.urlsafe_b64decode(body + "=="))
        changes: dict[str, dict[str, Any]] = {
            "expired": {"exp": claims["iat"] - 61, "iat": claims["iat"] - 3661},
            "issuer": {"iss": "https://elsewhere.example"},
            "audience": {"aud": ["another"]},
            "party": {"aud": [CLIENT, "another"], "azp": "another"},
            "nonce": {"nonce": "another"},
            "future": {"iat": claims["iat"] + 3600},
        }
        match self._how:
            case "signature":
                return f"{head}.{body}.{signature[::-1]}"
            case "key":
                return jwt.encode({"alg": "RS256"}, claims, RSAKey.generate_key())
            case "none":
                return _plain(b'{"alg":"none"}') + f".{body}."
            case "hmac":
                signed = _plain(b'{"alg":"HS256"}') + f".{body}"
                return f"{signed}.{_plain(hmac.digest(key.as_pem(private=False), signed.encode(), 'sha256'))}"
        return jwt.encode({"alg": "RS256", "kid": key.kid}, claims | changes[self._how], key)


def _plain(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def main() -> None:
    """Serve until killed; the first line printed is the issuer."""
    application = oidc_provider_mock.app(issue_refresh_token=False)
    spoiled = Spoiled()
    # Its own hook keeps what belongs to it in flask.g; ours comes after.
    application.before_request(spoiled.before)
    application.after_request(spoiled.after)
    server = werkzeug.serving.make_server("127.0.0.1", 0, application, threaded=True)
    sys.stdout.write(f"http://127.0.0.1:{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
