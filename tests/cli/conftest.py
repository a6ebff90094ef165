from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from aiplatform.client import http, waiting
from aiplatform.client.main import main
from tests.cli import platform_double
from tests.cli.platform_double import Platform


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home: no saved token, no variables of the person who runs the tests."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("AIP_URL", "AIP_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "config" / "aiplatform"


@pytest.fixture
def platform(home: Path) -> Iterator[Platform]:
    with platform_double.running() as running:
        yield running


@pytest.fixture
def aip(platform: Platform, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """`aip("train", "list")` as Alice, whose token is `aip_alice`; returns the exit code."""
    monkeypatch.setenv("AIP_URL", platform.url)
    monkeypatch.setenv("AIP_TOKEN", "aip_alice")
    for function in (waiting.read, waiting.until_over, waiting.follow_log):  # nobody waits in a test
        monkeypatch.setitem(function.__kwdefaults__, "pause", lambda _: None)

    def run(*argv: object) -> int:
        return main([str(word) for word in argv])

    return run


class _Answered:
    """What the real API said, as the client reads it."""

    def __init__(self, response: Any) -> None:
        self.status = response.status_code
        self.headers = {name.lower(): value for name, value in response.items()}
        self._body = response.getvalue() if response.streaming else response.content
        self._left = io.BytesIO(self._body)

    def json(self) -> Any:
        return json.loads(self._body) if self._body.strip() else None

    def read(self, size: int = -1) -> bytes:
        return self._left.read(size)

    def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def real_aip(home: Path, db: None, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """`real_aip(alice, "clusters", "list")`: the client against the real API, with a token of that person."""
    from django.test import Client as Browser

    from accounts.services import tokens

    secrets: dict[Any, str] = {}

    def opened(
        self: http.Client, method: str, route: str, *, data: Any = None, query: Any = None, headers: Any = None
    ) -> _Answered:
        sent = {"Authorization": f"Bearer {self.config.token}", **(headers or {})}
        kind = sent.pop("Content-Type", "application/octet-stream")
        path = self._path(urlsplit(self.config.url), route, query)
        response = Browser().generic(method, path, data or b"", content_type=kind, headers=sent)
        answer = _Answered(response)
        if answer.status >= 400:
            raise http.problem(answer, signed_in=True)  # type: ignore[arg-type]  # the double answers as `requests` does
        return answer

    monkeypatch.setattr(http.Client, "open", opened)
    monkeypatch.setenv("AIP_URL", "http://testserver")

    def run(person: Any, *argv: object) -> int:
        if person not in secrets:
            secrets[person] = tokens.issue(user=person, name="aip")[1]
        monkeypatch.setenv("AIP_TOKEN", secrets[person])
        return main([str(word) for word in argv])

    return run
