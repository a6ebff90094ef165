"""An object store, a registry and a server of devices, as small as their protocols allow, beside `far_servers`."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from tests.inference.far_servers import Asked

SECRET_KEY, ACCESS_KEY = "wJalrXUtnFEMI/K7MDENG", "AKIAEXAMPLE"


def parse_fields(text: str) -> dict[str, str]:
    return dict(re.findall(r"(\w+)=([^,\s]+)", text))


class Bucket(Asked):
    """An object store with one bucket `models`. It computes signatures by lines of its own."""

    def _refused(self, status: int, code: str) -> None:
        self.close_connection = True
        body = f'<?xml version="1.0"?><Error><Code>{code}</Code></Error>'.encode()
        self.answer(status, {"Connection": "close", "Content-Type": "application/xml"}, body)

    def _proven(self) -> bool:
        self.noted()
        proof, parts = parse_fields(self.headers["Authorization"]), urlsplit(self.path)
        key, day, region, service, end = proof["Credential"].split("/")
        if key != ACCESS_KEY:
            self._refused(403, "InvalidAccessKeyId")
            return False
        lines = [self.command, quote(unquote(parts.path), safe="/-_.~"), "&".join(sorted(parts.query.split("&")))]
        lines += [f"{name}:{self.headers[name].strip()}" for name in proof["SignedHeaders"].split(";")]
        lines += ["", proof["SignedHeaders"], self.headers["x-amz-content-sha256"]]
        summed = hashlib.sha256("\n".join(lines).encode()).hexdigest()
        text = f"AWS4-HMAC-SHA256\n{self.headers['x-amz-date']}\n{day}/{region}/{service}/{end}\n{summed}"
        made = ("AWS4" + SECRET_KEY).encode()
        for part in (day, region, service, end):
            made = hmac.new(made, part.encode(), hashlib.sha256).digest()
        if hmac.new(made, text.encode(), hashlib.sha256).hexdigest() != proof["Signature"]:
            self._refused(403, "SignatureDoesNotMatch")
            return False
        assert {"host", "x-amz-content-sha256", "x-amz-date"} <= set(proof["SignedHeaders"].split(";"))
        return True

    def do_GET(self) -> None:
        if not self._proven():
            return
        if self.server.troubled("skewed"):
            self._refused(403, "RequestTimeTooSkewed")
        elif self.server.troubled("region"):
            self._refused(301, "PermanentRedirect")
        elif not urlsplit(self.path).path.startswith("/models/"):
            self._refused(404, "NoSuchBucket")
        elif self.server.troubled("unlisted"):
            self._refused(403, "AccessDenied")
        else:
            self.answer(200, body=b"<ListBucketResult/>")

    def do_HEAD(self) -> None:
        if self._proven():
            data = self.server.files.get(unquote(self.path))
            self.answer(404) if data is None else self.answer(200, {"Content-Length": str(len(data))})

    def do_PUT(self) -> None:
        if not self._proven():
            return
        if self.server.troubled("full"):
            self._refused(507, "XMinioStorageFull")
            return
        data = self.body()
        if data is None:
            return
        if self.server.troubled("damaged"):
            data = b"\1" + data[1:]
        if hashlib.sha256(data).hexdigest() != self.headers["x-amz-content-sha256"]:
            self._refused(400, "XAmzContentSHA256Mismatch")
            return
        assert base64.b64decode(self.headers["x-amz-checksum-sha256"]) == hashlib.sha256(data).digest()
        self.server.files[unquote(self.path)] = data
        self.answer(200, {"ETag": '"x"'})


class RegistryOfTests(Asked):
    """A registry that asks for a token, gives it to alice, and takes blobs in chunks."""

    uploads: dict[str, bytearray]

    def _may(self) -> bool:
        self.noted()
        if self.headers.get("Authorization") == "Bearer registry-token":
            return True
        realm = self.server.realm if hasattr(self.server, "realm") else f"{self.server.address}/token"
        challenge = f'Bearer realm="{realm}",service="tests",scope="repository:lab/models:pull,push"'
        self.close_connection = True
        self.answer(401, {"WWW-Authenticate": challenge, "Connection": "close"})
        return False

    def _held(self) -> dict[str, bytearray]:
        held: dict[str, bytearray] = self.server.__dict__.setdefault("uploads", {})
        return held

    def _upload(self) -> bytearray:
        return self._held()[urlsplit(self.path).path.rpartition("/")[2]]

    def _goes_on(self, status: int) -> None:
        headers = {"Location": urlsplit(self.path).path}
        if self._upload():
            headers["Range"] = f"0-{len(self._upload()) - 1}"
        self.answer(status, headers)

    def do_GET(self) -> None:
        if self.path.startswith("/token"):
            self.noted()
            both = base64.b64decode(self.headers.get("Authorization", "Basic Og==").split()[1]).decode()
            if both != f"alice:{self.server.token}":
                self.answer(401)
                return
            assert parse_qs(urlsplit(self.path).query)["scope"] == ["repository:lab/models:pull,push"]
            self.answer(200, body=json.dumps({"token": "registry-token"}).encode())
        elif self._may():
            self._goes_on(204)

    def do_HEAD(self) -> None:
        if self._may():
            self.answer(200 if self.path in self.server.files else 404)

    def do_POST(self) -> None:
        if not self._may():
            return
        if self.server.troubled("full"):
            self.answer(507)
            return
        number = str(len(self._held()))
        self._held()[number] = bytearray()
        there = "http://203.0.113.9" if self.server.troubled("elsewhere") else ""
        self.answer(202, {"Location": f"{there}/v2/lab/models/blobs/uploads/{number}"})

    def do_DELETE(self) -> None:
        if self._may():
            self._held().pop(self.path.rpartition("/")[2])
            self.answer(204)

    def do_PATCH(self) -> None:
        if not self._may():
            return
        held, length = self._upload(), int(self.headers["Content-Length"])
        if self.server.troubled("cut"):
            held += self.rfile.read(length // 2)
            self.connection.close()
            self.close_connection = True
            return
        data = self.rfile.read(length)
        if not self.headers["Content-Range"].startswith(f"{len(held)}-"):
            self._goes_on(416)
            return
        held += b"\0" * len(data) if self.server.troubled("damaged") else data
        self._goes_on(202)

    def do_PUT(self) -> None:
        if not self._may():
            return
        data = self.rfile.read(int(self.headers["Content-Length"]))
        if "/manifests/" in self.path:
            self.server.files[self.path] = data
            self.answer(201, {"Docker-Content-Digest": f"sha256:{hashlib.sha256(data).hexdigest()}"})
            return
        digest = parse_qs(urlsplit(self.path).query)["digest"][0]
        held = bytes(self._upload()) + data
        if f"sha256:{hashlib.sha256(held).hexdigest()}" != digest:
            self.answer(400, body=json.dumps({"errors": [{"code": "DIGEST_INVALID"}]}).encode())
            return
        self.server.files[f"/v2/lab/models/blobs/{digest}"] = held
        self.answer(201)


class Director(Asked):
    """A server of devices with sessions as Redfish has them."""

    def do_POST(self) -> None:
        self.noted()
        sessions: dict[str, str] = self.server.__dict__.setdefault("sessions", {})
        if self.path == "/redfish/v1/SessionService/Sessions":
            credentials: Any = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if credentials != {"UserName": "alice", "Password": self.server.token}:
                self.answer(401)
                return
            sessions["/redfish/v1/SessionService/Sessions/7"] = "session-token"
            self.answer(201, {"X-Auth-Token": "session-token", "Location": next(iter(sessions))})
            return
        if self.headers.get("X-Auth-Token") not in sessions.values():
            self.answer(401)
            return
        if self.server.troubled("full"):
            self.close_connection = True
            self.answer(507, {"Connection": "close"})
            return
        data = self.body()
        if data is None:
            return
        border = self.headers["Content-Type"].partition("boundary=")[2].encode()
        head, _gap, rest = data.partition(b"\r\n\r\n")
        name = re.search(rb'filename="([^"]+)"', head)
        assert name
        file = rest.removesuffix(b"\r\n--" + border + b"--\r\n")
        self.server.files[name.group(1).decode()] = file
        summed = "0" * 64 if self.server.troubled("damaged") else hashlib.sha256(file).hexdigest()
        self.answer(201, body=json.dumps({"@odata.id": "/packages/1", "sha256": summed}).encode())

    def do_DELETE(self) -> None:
        self.noted()
        self.server.__dict__["sessions"].pop(self.path)
        self.answer(204)
