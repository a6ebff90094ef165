from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from aiplatform.cli.client import waiting
from aiplatform.cli.client.main import main
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
    for function in (waiting.until_over, waiting.follow_log):  # nobody waits in a test
        monkeypatch.setitem(function.__kwdefaults__, "pause", lambda _: None)

    def run(*argv: object) -> int:
        return main([str(word) for word in argv])

    return run
