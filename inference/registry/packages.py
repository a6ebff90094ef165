"""A model version as a package that runs with one command where there is Python: no platform, no network.

The package holds the version's own files, the product's own lines that services answer with, and run.py. Its bytes are
the same each time, so it can be checked and its download resumed.
"""

from __future__ import annotations

import ast
import hashlib
import json
import shlex
from functools import cache
from importlib.metadata import version as installed
from pathlib import Path

from django.utils.translation import gettext as _

import inference
import training
from accounts.models import User
from aiplatform.lib.errors import Invalid
from aiplatform.lib.zips import Entry
from inference.registry.models import ModelVersion
from inference.registry.selftest import self_tests
from inference.registry.snippets import generation

START = ("inference.kit.models.standalone", "inference.kit.models.local")  # of run.py, of edge devices
OURS = {"inference": Path(inference.__file__).parent, "training": Path(training.__file__).parent}
#: Name in the folder `inference/server` of a package → module. Agents import these names from packages of any release.
AGENT_MODULES = {
    "alone": "inference.kit.models.standalone",
    "local": "inference.kit.models.local",
    "decode": "inference.kit.model_io.decode",
    "refusals": "inference.kit.model_io.refusals",
    "requested": "inference.kit.model_io.requested",
}
NEEDS = ("numpy", "onnxruntime", "pillow")
RUN = '''"""Print what the model says of pictures: python run.py picture.jpg"""

import sys
from pathlib import Path

HOME = Path(__file__).resolve().parent
sys.path.insert(0, str(HOME))

try:
    from inference.kit.models.standalone import main
except ModuleNotFoundError as missing:
    sys.exit(f"{missing.name} is missing. Install what the model needs: pip install -r requirements.txt")

if __name__ == "__main__":
    sys.exit(main(HOME / "model", sys.argv[1:]))
'''
README = """# {name}

    pip install -r requirements.txt
    python run.py picture.jpg

    python run.py --check

prints what the model says of each picture, a line of JSON each, as its service does: task, size of the picture,
predictions. With `--check` it answers the pictures in `selftest/`, where the package has some, and compares: the exit
code is 0 where this machine answers as the platform did, 3 where it does not. `python run.py --help` lists the
options. It needs Python 3.11 or newer, ONNX Runtime, NumPy and Pillow.

| file | |
|---|---|
| `model/*.onnx`, `model/model.json` | the networks; labels, and what is done before and after them |
| `about.json` | what the platform knew of it: task, classes, figures, data |
| `use/predict.js` | the same in a browser, by onnxruntime-web; its first lines show how |
| `use/predict.cpp` | the same in C++, by ONNX Runtime's C++ API; its first lines show how |
| `selftest/` | a few pictures with the answers of the platform; some may be of the dataset of an evaluation |
| `SHA256SUMS` | `sha256sum -c SHA256SUMS` checks every file |
| `inference/`, `training/` | the lines that run it, licence Apache-2.0 |

`use/` is there for models of whole pictures that answer classes, tags or boxes.
"""


def entries(version: ModelVersion, *, by: User | None) -> list[Entry]:
    """Return the entries of the package.

    Args:
        by: the recipient: images of a dataset are included only if the user may read it.

    Raises:
        Invalid: the version has no ONNX file, or no description of its outputs.
    """
    if not version.can_be_evaluated:
        message = _(
            "Only models with an ONNX file and a description (model.json) can be exported as standalone packages."
        )
        raise Invalid(message, field="version")
    name = f"{version.model.name} v{version.number}"
    contents: dict[str, bytes] = {
        "run.py": RUN.encode(),
        "README.md": README.format(name=name).encode(),
        "requirements.txt": "".join(f"{package}>={installed(package)}\n" for package in NEEDS).encode(),
        "about.json": json.dumps(_about(version), ensure_ascii=False, indent=1).encode() + b"\n",
        **{inside: path.read_bytes() for inside, path in code().items()},
        **_agent_modules(),
        **generation.files(version.path),
        **self_tests.for_package(version, by).files,
    }
    sums = {inside: hashlib.sha256(data).hexdigest() for inside, data in contents.items()}
    sums |= {f"model/{entry['name']}": entry["sha256"] for entry in version.files}
    contents["SHA256SUMS"] = "".join(f"{digest}  {inside}\n" for inside, digest in sorted(sums.items())).encode()
    files: list[Entry] = [(f"model/{entry['name']}", version.path, entry["name"]) for entry in version.files]
    return [*sorted(contents.items()), *files]


def _agent_modules() -> dict[str, bytes]:
    """Return the modules that agents import, each an alias of another one, by their path in the package."""
    folder = f"{inference.__name__}/server"
    aliases = {
        f"{folder}/{name}.py": f"import sys\n\nimport {module}\n\nsys.modules[__name__] = sys.modules[{module!r}]\n"
        for name, module in AGENT_MODULES.items()
    }
    return {path: text.encode() for path, text in {f"{folder}/__init__.py": "", **aliases}.items()}


def filename(version: ModelVersion) -> str:
    """What the package is called."""
    return f"{version.model.name}_v{version.number}_package.zip"


def commands(version: ModelVersion) -> str:
    """Return the commands that run the package on an image."""
    name = shlex.quote(filename(version))
    folder = shlex.quote(f"{version.model.name}_v{version.number}")
    lines = (f"unzip {name} -d {folder} && cd {folder}", "pip install -r requirements.txt", "python run.py image.jpg")
    return "\n".join(lines)


def _about(version: ModelVersion) -> dict[str, object]:
    return {
        "model": version.model.name,
        "version": version.number,
        "task": version.task,
        "architecture": version.architecture,
        "classes": version.classes,
        "figures": version.metrics,
        "data": version.dataset_label,
        "sha256": version.sha256,
    }


@cache
def code() -> dict[str, Path]:
    """Return the files of the product that a package needs, by their path in it: those that START imports."""
    sources: dict[str, Path] = {}
    waiting = [*START]
    while waiting:
        name = waiting.pop()
        path = _file(name)
        if path is None:
            continue
        target = str(path.relative_to(OURS[name.partition(".")[0]].parent))
        if target in sources:
            continue
        sources[target] = path
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        waiting += _imports(path, package)
        if name.startswith("inference"):  # those above it say no more than their doc; namespaces do for the other
            waiting += [".".join(name.split(".")[:depth]) for depth in range(1, name.count(".") + 1)]
    return sources


def _file(name: str) -> Path | None:
    """The file of one of our modules; None of anybody else's, and of a name in a module."""
    first, *rest = name.split(".")
    if first not in OURS:
        return None
    path = OURS[first].joinpath(*rest)
    if (path / "__init__.py").is_file():
        return path / "__init__.py"
    return path.with_suffix(".py") if rest and path.with_suffix(".py").is_file() else None


def _imports(path: Path, package: str) -> list[str]:
    """Names that a file imports when it is loaded; not those that only type checkers see."""
    names: list[str] = []
    waiting: list[ast.AST] = [ast.parse(path.read_text())]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            names += [base, *(f"{base}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            waiting += node.orelse
        else:
            waiting += ast.iter_child_nodes(node)
    return names
