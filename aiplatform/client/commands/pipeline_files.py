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


@dataclass(frozen=True)
class Source:
    """Specification in a file, and its layout, if the file has one."""

    spec: dict[str, Any]
    layout: dict[str, Any] | None = None


def is_file(name: str) -> bool:
    """Whether an argument means a file, not the name of a pipeline."""
    return name.endswith(ENDINGS)


def path(name: str) -> Path:
    """The path of an argument that has to be a file of a pipeline."""
    if not is_file(name):
        raise ClientError(f"{name}: the file name must end in {', '.join(ENDINGS)}.", USAGE)
    return Path(name).expanduser()


def read(client: Client, name: str) -> Source:
    """Read a file; YAML is read by the platform, so that both always agree on what it says.

    Raises:
        ClientError: there is no such file, or it says no pipeline.
    """
    file = path(name)
    if not file.is_file():
        raise ClientError(f"File {file} not found.", NOT_FOUND)
    if file.suffix == ".py":
        return Source(_run(file))
    try:
        text = file.read_text(encoding="utf-8")
        if file.suffix == ".json":
            content = json.loads(text)
            return Source(content.get("spec", content), content.get("layout") if "spec" in content else None)
    except (UnicodeDecodeError, ValueError, AttributeError) as exc:
        raise ClientError(f"{file} is not valid {file.suffix[1:]} in UTF-8: {exc}", USAGE) from exc
    answer = client.post(f"{TEXTS}read/", {"text": text})
    return Source(answer["spec"], answer["layout"])


def write(client: Client, file_name: str, spec: dict[str, Any], layout: dict[str, Any], name: str) -> None:
    """Write a file; the comments of a YAML file that is there stay."""
    file = path(file_name)
    if file.suffix == ".json":
        file.write_text(
            json.dumps({"layout": layout, "spec": spec}, ensure_ascii=False, indent=2, sort_keys=True) + "\n"
        )
        return
    body: dict[str, Any] = {"spec": spec, "layout": layout, "name": name}
    if file.suffix == ".py":
        body |= {"form": "python"}
    elif file.is_file():
        body |= {"over": file.read_text(encoding="utf-8", errors="replace")}
    file.write_text(client.post(f"{TEXTS}write/", body)["text"], encoding="utf-8")


def _run(script: Path) -> dict[str, Any]:
    """Run a script by the builder's own program, and return the specification that it prints."""
    builder = importlib.util.find_spec("inference.pipelines.builder")
    assert builder is not None
    assert builder.origin is not None
    try:
        process = subprocess.run(
            [sys.executable, builder.origin, str(script)], stdout=subprocess.PIPE, timeout=SCRIPT_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired as exc:
        raise ClientError(f"{script} did not exit within {SCRIPT_TIMEOUT_S} seconds.") from exc
    if process.returncode:
        raise ClientError(f"{script} exited with {process.returncode}; see its output above.", FAILURE)
    spec: dict[str, Any] = json.loads(process.stdout)
    return spec
