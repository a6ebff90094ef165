"""A small OpenID Connect provider: discovery, codes that count once, PKCE, tokens with real RSA signatures."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT, SECRET = "aiplatform", "client-secret"


@cache
def key(name: str) -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": name, "use": "sig"}, private=True)


def _b64(said: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(said).encode()).rstrip(b"=").decode()


@dataclass
class Provider:
    """`person` is signed in there; the other fields make it lie."""

    issuer: str = ""
    person: dict = field(default_factory=lambda: {"sub": "42", "preferred_username": "grace", "name": "Grace Hopper"})
    claims: dict = field(default_factory=dict)  # put over those of an ID token; None takes one away
    userinfo: dict = field(default_factory=dict)
    algorithm: str = "RS256"
    signed_by: str = "one"
    methods: list = field(default_factory=lambda: ["client_secret_basic"])
    codes: dict = field(default_factory=dict)
    asked: list = field(default_factory=list)  # paths in the order they were asked for

    def authorize(self, address: str) -> str:
        """What a browser that is signed in there does at `address`: the query with which it is sent back."""
        parts = urlsplit(address)
        asked = {name: said[0] for name, said in parse_qs(parts.query).items()}
        assert f"{parts.scheme}://{parts.netloc}{parts.path}" == f"{self.issuer}/authorize"
        assert (asked["client_id"], asked["response_type"]) == (CLIENT, "code")
        assert asked["code_challenge_method"] == "S256"
        code = f"code-{len(self.codes)}"
        self.codes[code] = asked
        return f"code={code}&state={asked['state']}"

    def token(self, sent: dict[str, str], authorization: str) -> tuple[int, dict]:
        basic = "Basic " + base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        if authorization != basic and (sent.get("client_id"), sent.get("client_secret")) != (CLIENT, SECRET):
            return 401, {"error": "invalid_client"}
        asked = self.codes.pop(sent.get("code", ""), None)
        if asked is None or asked["redirect_uri"] != sent["redirect_uri"]:
            return 400, {"error": "invalid_grant"}
        proof = base64.urlsafe_b64encode(hashlib.sha256(sent["code_verifier"].encode()).digest()).rstrip(b"=").decode()
        if proof != asked["code_challenge"]:
            return 400, {"error": "invalid_grant"}
        return 200, {"access_token": "at", "token_type": "Bearer", "id_token": self.id_token(asked["nonce"])}

    def id_token(self, nonce: str) -> str:
        at = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT, "iat": at, "exp": at + 60, "nonce": nonce}
        said = {name: value for name, value in (claims | self.person | self.claims).items() if value is not None}
        if self.algorithm == "none":
            return f"{_b64({'alg': 'none', 'kid': 'one'})}.{_b64(said)}."
        if self.algorithm == "HS256":  # the public key passed off as a shared secret
            signed = f"{_b64({'alg': 'HS256', 'kid': 'one'})}.{_b64(said)}"
            seal = hmac.digest(key("one").as_pem(private=False), signed.encode(), "sha256")
            return f"{signed}.{base64.urlsafe_b64encode(seal).rstrip(b'=').decode()}"
        return jwt.encode({"alg": self.algorithm, "kid": "one"}, said, key(self.signed_by))

    def answer(self, path: str, sent: dict[str, str], authorization: str) -> tuple[int, dict]:
        self.asked.append(path)
        if path.endswith("/.well-known/openid-configuration"):
            return 200, {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "jwks_uri": f"{self.issuer}/keys",
                "token_endpoint_auth_methods_supported": self.methods,
                **({"userinfo_endpoint": f"{self.issuer}/userinfo"} if self.userinfo else {}),
            }
        if path == "/keys":
            return 200, {"keys": [key("one").as_dict(private=False)]}
        if path == "/userinfo":
            return (200, self.userinfo) if authorization == "Bearer at" else (401, {})
        return self.token(sent, authorization) if path == "/token" else (404, {})


@contextmanager
def provider() -> Iterator[Provider]:
    made = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            sent = {name: said[0] for name, said in parse_qs(self.rfile.read(length).decode()).items()}
            status, said = made.answer(urlsplit(self.path).path, sent, self.headers.get("Authorization", ""))
            body = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.issuer = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, args=[0.02], daemon=True).start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
