"""Files of pipelines on this machine: YAML, JSON, and Python, which is run here and never at the platform."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiplatform.client.errors import FAILURE, NOT_FOUND, USAGE, ClientError
from aiplatform.client.http import Client

ENDINGS = (".yaml", ".yml", ".json", ".py")
TEXTS = "pipeline-texts/"
SCRIPT_TIMEOUT_S = 300


@dataclass(frozen=True, slots=True)
class Given:
    """What a file says. `layout` is None where it says nothing of it."""

    spec: dict[str, Any]
    layout: dict[str, Any] | None = None


def is_file(given: str) -> bool:
    """Whether an argument means a file, not the name of a pipeline."""
    return given.endswith(ENDINGS)


def path(given: str) -> Path:
    """The path of an argument that has to be a file of a pipeline."""
    if not is_file(given):
        raise ClientError(f"{given}: the file's name ends in {', '.join(ENDINGS)}.", USAGE)
    return Path(given).expanduser()


def read(client: Client, given: str) -> Given:
    """Read a file; YAML is read by the platform, so that both always agree on what it says.

    Raises:
        ClientError: there is no such file, or it says no pipeline.
    """
    file = path(given)
    if not file.is_file():
        raise ClientError(f"There is no file {file}.", NOT_FOUND)
    if file.suffix == ".py":
        return Given(_run(file))
    try:
        text = file.read_text(encoding="utf-8")
        if file.suffix == ".json":
            said = json.loads(text)
            return Given(said.get("spec", said), said.get("layout") if "spec" in said else None)
    except (UnicodeDecodeError, ValueError, AttributeError) as exc:
        raise ClientError(f"{file} is no {file.suffix[1:]} in UTF-8: {exc}", USAGE) from exc
    answer = client.post(f"{TEXTS}read/", {"text": text})
    return Given(answer["spec"], answer["layout"])


def write(client: Client, given: str, spec: dict[str, Any], layout: dict[str, Any], name: str) -> None:
    """Write a file; the comments of a YAML file that is there stay."""
    file = path(given)
    if file.suffix == ".json":
        file.write_text(
            json.dumps({"layout": layout, "spec": spec}, ensure_ascii=False, indent=2, sort_keys=True) + "\n"
        )
        return
    asked: dict[str, Any] = {"spec": spec, "layout": layout, "name": name}
    if file.suffix == ".py":
        asked |= {"form": "python"}
    elif file.is_file():
        asked |= {"over": file.read_text(encoding="utf-8", errors="replace")}
    file.write_text(client.post(f"{TEXTS}write/", asked)["text"], encoding="utf-8")


def _run(script: Path) -> dict[str, Any]:
    """Run a script by the builder's own program, and return the specification that it prints."""
    found = importlib.util.find_spec("inference.pipelines.builder")
    assert found is not None
    assert found.origin is not None
    try:
        ran = subprocess.run(
            [sys.executable, found.origin, str(script)], stdout=subprocess.PIPE, timeout=SCRIPT_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired as exc:
        raise ClientError(f"{script} did not end within {SCRIPT_TIMEOUT_S} seconds.") from exc
    if ran.returncode:
        raise ClientError(f"{script} ended with {ran.returncode}; what it said stands above.", FAILURE)
    spec: dict[str, Any] = json.loads(ran.stdout)
    return spec
