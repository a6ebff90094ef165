"""Build an engine, inside a job: a Python environment at its final place, then the facts of what is in it.

    builder.py PLAN.json

The plan names `target`, `base` (a Python), `requirements`, `index` (an address, a folder of wheels, or nothing) and
`platform` (folders whose packages the engine sees as well, after its own). Standard library only; what it prints is the
job's log. A build that ends well leaves engine.json in AIP_OUTPUT_DIR, any other leaves none.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MARK = "aiplatform.pth"
_LOOK = """
import json, platform, importlib.metadata as m
found = {"python": platform.python_version(), "machine": platform.machine()}
found["packages"] = len({d.name for d in m.distributions() if d.name})
try:
    import torch
    found["torch"], found["cuda"] = torch.__version__, torch.version.cuda or ""
except ImportError:
    pass
print(json.dumps(found))
"""


def main(plan: "dict[str, Any]") -> None:
    """Build what the plan says.

    Raises:
        CalledProcessError: a step failed and said why.
    """
    target = Path(plan["target"])
    _step(f"[build] Python {plan['python']}", [plan["base"], "-I", "-m", "venv", "--clear", str(target)])
    python = str(target / "bin/python")
    if plan["requirements"].strip():
        wanted = Path(os.environ["TMPDIR"], "requirements.txt")
        wanted.write_text(plan["requirements"])
        pip = [python, "-I", "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--no-cache-dir"]
        _step("[build] packages", [*pip, *index(plan["index"]), "--requirement", str(wanted)])
    _list = [python, "-I", "-m", "pip", "--disable-pip-version-check", "list", "--format", "freeze"]
    _step("[build] what is in it", _list)
    if plan["platform"]:
        packages = next(target.glob("lib/python3*/site-packages"))
        (packages / MARK).write_text("".join(f"{folder}\n" for folder in plan["platform"]))
    disable_news(target)
    result = subprocess.run([python, "-I", "-c", _LOOK], stdout=subprocess.PIPE, text=True, check=True)
    _write(Path(os.environ["AIP_OUTPUT_DIR"], "engine.json"), json.loads(result.stdout))
    print("[build] ready", flush=True)


def disable_news(target: Path) -> None:
    """Keep a JupyterLab from asking whether it may fetch news from its makers; users can still enable them."""
    lab = target / "share/jupyter/lab"
    if lab.is_dir():
        (lab / "settings").mkdir(exist_ok=True)
        _write(lab / "settings/overrides.json", {"@jupyterlab/apputils-extension:notification": {"fetchNews": "false"}})


def index(location: str) -> list[str]:
    """Return pip's options for an index; without one pip's own configuration applies."""
    if not location:
        return []
    return ["--no-index", "--find-links", location] if location.startswith("/") else ["--index-url", location]


def _step(name: str, argv: list[str]) -> None:
    started_at = time.monotonic()
    print(name, flush=True)
    subprocess.run(argv, check=True)
    print(f"{name}: {time.monotonic() - started_at:.1f} s", flush=True)


def _write(path: Path, value: object) -> None:
    part = path.with_suffix(".part")
    part.write_text(json.dumps(value))
    part.rename(path)


if __name__ == "__main__":
    try:
        main(json.loads(Path(sys.argv[1]).read_text()))
    except subprocess.CalledProcessError as exc:
        sys.exit(f"[build] {' '.join(map(str, exc.cmd[:6]))} … ended with {exc.returncode}")
