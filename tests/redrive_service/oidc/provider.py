"""A provider that can be told to lie: it answers over HTTP on loopback, and checks what a provider must check."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key

CLIENT, SECRET, KID = "redrive", "a-secret-of-the-client-hunter2", "key-1"
Claims = dict[str, Any]


@cache
def key(name: str = "the provider's") -> RSAPrivateKey:
    del name  # each name has its own
    return generate_private_key(65537, 2048)


def jwk(of: RSAPrivateKey, **more: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(of.public_key()))
    return told | {"kid": KID, "use": "sig", "alg": "RS256"} | more


@dataclass
class Provider:
    """What it says of the person, and how it lies: everything may be changed by a test."""

    url: str = ""
    person: Claims = field(default_factory=lambda: {"sub": "ann-1", "preferred_username": "ann", "groups": ["ops"]})
    userinfo: Claims = field(default_factory=dict)
    metadata: Claims = field(default_factory=dict)
    lies: Claims = field(default_factory=dict)  # claims of the ID token; None leaves one out
    sign: Callable[[Claims], str] = lambda claims: jwt.encode(claims, key(), "RS256", {"kid": KID})
    keys: list[dict[str, Any]] = field(default_factory=lambda: [jwk(key())])
    broken: dict[str, tuple[int, str]] = field(default_factory=dict)  # paths that answer something else
    asked: list[str] = field(default_factory=list)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def authorize(self, location: str) -> str:
        """Where the browser is sent back to, on its host: the person is known there."""
        told = {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}
        code = secrets.token_urlsafe(8)
        self.codes[code] = told
        return f"{urlsplit(told['redirect_uri']).path}?{urlencode({'code': code, 'state': told['state']})}"

    def sent_back(self, location: str) -> str:
        """The same, for a browser that is really sent."""
        (back,) = parse_qs(urlsplit(location).query)["redirect_uri"]
        return urljoin(back, self.authorize(location))

    def answer(self, path: str, form: dict[str, str]) -> tuple[int, Any]:
        self.asked.append(path)
        match path:
            case "/.well-known/openid-configuration":
                return 200, self._metadata() | self.metadata
            case "/jwks":
                return 200, {"keys": self.keys}
            case "/token":
                return self._token(form)
            case "/userinfo":
                return 200, {"sub": self.person["sub"]} | self.userinfo
        return 404, {}

    def _metadata(self) -> Claims:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/jwks",
            "userinfo_endpoint": f"{self.url}/userinfo",
            "end_session_endpoint": f"{self.url}/logout",
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
        }

    def _token(self, form: dict[str, str]) -> tuple[int, Any]:
        asked = self.codes.pop(form.get("code", ""), None)
        if asked is None or (form.get("client_id"), form.get("client_secret")) != (CLIENT, SECRET):
            return 400, {"error": "invalid_grant"}
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if (asked["code_challenge"], asked["code_challenge_method"]) != (challenge, "S256"):
            return 400, {"error": "invalid_grant"}
        if asked["redirect_uri"] != form.get("redirect_uri"):
            return 400, {"error": "invalid_grant"}
        now = int(time.time())  # noqa: TID251  PyJWT reads the same clock
        claims = self.person | {
            "iss": self.url, "aud": CLIENT, "nonce": asked["nonce"], "iat": now, "exp": now + 300,
        }  # fmt: skip
        told = {name: value for name, value in (claims | self.lies).items() if value is not None}
        return 200, {"access_token": "of ann", "token_type": "Bearer", "id_token": self.sign(told)}


@contextmanager
def running() -> Iterator[Provider]:
    """The provider, on a port that the system chooses."""
    provider = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._reply({})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self._reply({name: values[0] for name, values in parse_qs(body).items()})

        def _reply(self, form: dict[str, str]) -> None:
            path = urlsplit(self.path).path
            status, told = provider.answer(path, form)
            text = json.dumps(told)
            if path in provider.broken:
                status, text = provider.broken[path]
            self.send_response(302 if path == "/authorize" else status)
            if path == "/authorize":
                self.send_header("Location", provider.sent_back(self.path))
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        provider.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield provider
        finally:
            server.shutdown()
            thread.join()
