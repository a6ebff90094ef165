"""HTTP requests by the standard library; problem+json becomes messages."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any
from urllib.parse import SplitResult, urlencode, urlsplit

from aiplatform import __version__
from aiplatform.client import output, version
from aiplatform.client.config import Config
from aiplatform.client.errors import FAILURE, NOT_FOUND, NOT_SIGNED_IN, USAGE, ClientError

TIMEOUT_S = 60.0
AGAIN_S = 1.0  # before a request is sent again
MAX_BUSY_S = 60.0  # for which a request waits for a busy platform
API = "/api/v1/"
EXIT_BY_STATUS = {400: USAGE, 401: NOT_SIGNED_IN, 404: NOT_FOUND, 422: USAGE}


class Answer:
    """An HTTP response: status, headers with lower-case names, and a body that may still be read."""

    def __init__(self, response: http.client.HTTPResponse, connection: http.client.HTTPConnection) -> None:
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self._response = response
        self._connection = connection

    def read(self, size: int | None = None) -> bytes:
        return self._response.read(size) if size is not None else self._response.read()

    def json(self) -> Any:
        raw = self.read()
        return json.loads(raw) if raw.strip() else None

    def close(self) -> None:
        self._response.close()
        self._connection.close()


class Client:
    """A caller with an address and a token. Every method raises ClientError on refusal."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def get(self, route: str, **query: object) -> Any:
        return self.call("GET", route, query=query)

    def post(
        self,
        route: str,
        body: object = None,
        *,
        once: bool = False,
        patience_s: float = 0.0,
        pause: Callable[[float], None] = time.sleep,
    ) -> Any:
        """POST JSON; `once` adds an Idempotency-Key, so a repeated send creates one thing.

        With `once` a request that the platform is too busy to take now is sent again when it says, for a minute.

        Args:
            patience_s: with `once`, for how long it is sent again with the same key where the platform does not answer.
        """
        headers = {"Idempotency-Key": uuid.uuid4().hex} if once else {}
        away_s = busy_s = 0.0
        while True:
            try:
                return self.call("POST", route, body=body if body is not None else {}, headers=headers)
            except ClientError as exc:
                wait_s = min(exc.retry_after_s, MAX_BUSY_S)
                if once and wait_s and busy_s < MAX_BUSY_S:
                    output.say(f"The platform is busy; sending again in {wait_s:.0f} s.")
                    busy_s += wait_s
                    pause(wait_s)
                    continue
                away = exc.status in (0, 502, 503) or exc.code == "idempotency_in_progress"
                if not away or away_s >= patience_s:
                    raise
            away_s += AGAIN_S
            pause(AGAIN_S)

    def post_file(self, route: str, fields: Mapping[str, str], name: str, file: Path) -> Any:
        """POST a small file and fields beside it as a form, once."""
        mark = uuid.uuid4().hex
        parts = [f'--{mark}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{fields[key]}\r\n' for key in fields]
        shown = file.name.replace('"', "_")
        parts.append(f'--{mark}\r\nContent-Disposition: form-data; name="{name}"; filename="{shown}"\r\n\r\n')
        data = "".join(parts).encode() + file.read_bytes() + f"\r\n--{mark}--\r\n".encode()
        headers = {"Idempotency-Key": mark, "Content-Type": f"multipart/form-data; boundary={mark}"}
        answer = self.open("POST", route, data=data, headers=headers)
        try:
            return answer.json()
        finally:
            answer.close()

    def delete(self, route: str) -> Any:
        return self.call("DELETE", route)

    def pages(self, route: str, *, limit: int | None = None, **query: object) -> Iterator[Any]:
        """Every row of a list, page after page, at most `limit` of them."""
        count = 0
        answer = self.get(route, **query)
        while True:
            rows = answer["results"] if isinstance(answer, dict) and "results" in answer else answer
            for row in rows:
                if limit is not None and count >= limit:
                    return
                count += 1
                yield row
            following = answer.get("next") if isinstance(answer, dict) else None
            if not following or (limit is not None and count >= limit):
                return
            parts = urlsplit(following)
            answer = self.call("GET", parts.path + (f"?{parts.query}" if parts.query else ""))

    def call(
        self,
        method: str,
        route: str,
        *,
        body: object = None,
        query: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Send JSON, read JSON. `route` is relative to the API unless it begins with a slash."""
        sent = dict(headers or {})
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            sent["Content-Type"] = "application/json"
        answer = self.open(method, route, data=data, query=query, headers=sent)
        try:
            return answer.json()
        except ValueError as exc:
            raise ClientError(f"{self.config.url} did not respond with JSON. Is it the platform?") from exc
        finally:
            answer.close()

    def open(
        self,
        method: str,
        route: str,
        *,
        data: bytes | IO[bytes] | None = None,
        query: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send bytes and hand back the open answer of a status below 400.

        Raises:
            ClientError: no connection, or a refusal; the message is the problem's own sentence.
        """
        target = urlsplit(self.config.url)
        path = self._path(target, route, query)
        sent = {"Accept": "application/json", "User-Agent": f"aip/{__version__}", **(headers or {})}
        if self.config.token:
            sent["Authorization"] = f"Bearer {self.config.token}"
        connection = connect(target)
        try:
            connection.request(method, path, body=data, headers=sent)
            answer = Answer(connection.getresponse(), connection)
        except (OSError, http.client.HTTPException) as exc:
            connection.close()
            raise unreachable(self.config.url, exc) from exc
        version.note(answer.headers.get(version.HEADER), self.config.url)
        if answer.status >= 400:
            try:
                raise problem(answer, signed_in=bool(self.config.token))
            finally:
                answer.close()
        return answer

    def _path(self, target: SplitResult, route: str, query: Mapping[str, object] | None) -> str:
        path = target.path + (route if route.startswith("/") else API + route)
        parameters = {name: value for name, value in (query or {}).items() if value is not None and value != ""}
        if parameters:
            path += ("&" if "?" in path else "?") + urlencode(parameters, doseq=True)
        return path


def connect(target: SplitResult) -> http.client.HTTPConnection:
    """A connection to the host of an address; certificates are checked."""
    host = target.hostname or "127.0.0.1"
    if target.scheme == "https":
        return http.client.HTTPSConnection(
            host, target.port or 443, timeout=TIMEOUT_S, context=ssl.create_default_context()
        )
    return http.client.HTTPConnection(host, target.port or 80, timeout=TIMEOUT_S)


def unreachable(url: str, exc: Exception) -> ClientError:
    if isinstance(exc, ssl.SSLError):
        return ClientError(f"The certificate of {url} is not trusted by this computer: {exc}.")
    if isinstance(exc, socket.gaierror):
        return ClientError(f"{url} not found. Check the address in AIP_URL or `aip login URL`.")
    if isinstance(exc, TimeoutError):
        return ClientError(f"{url} did not respond within {TIMEOUT_S:.0f} seconds.")
    return ClientError(f"No connection to {url}: {exc or type(exc).__name__}. Is the platform running there?")


def problem(answer: Answer, *, signed_in: bool) -> ClientError:
    """Turn RFC 9457 problem+json into one message per line."""
    try:
        body = answer.json()
    except (ValueError, OSError, http.client.HTTPException):
        body = None
    body = body if isinstance(body, dict) else {}
    sentence = str(body.get("detail") or body.get("title") or f"The platform responded with status {answer.status}.")
    lines = [sentence]
    errors = body.get("errors")
    if isinstance(errors, dict):
        for field, messages in errors.items():
            texts = messages if isinstance(messages, list) else [messages]
            lines += [f"  {field}: {message}" for message in texts if message != sentence]
    if answer.status == 401:
        lines.append("Sign in again with: aip login" if signed_in else "Sign in with: aip login")
    if answer.status >= 500 and (body.get("request_id") or body.get("instance")):
        lines.append(f"Request {body.get('request_id') or body.get('instance')}")
    retry_after = answer.headers.get("retry-after") or ""
    if retry_after:
        lines.append(f"Try again in {retry_after} seconds.")
    return ClientError(
        "\n".join(lines), EXIT_BY_STATUS.get(answer.status, FAILURE), code=str(body.get("code") or ""),
        status=answer.status, retry_after_s=float(retry_after) if retry_after.isdigit() else 0.0,
    )  # fmt: skip
