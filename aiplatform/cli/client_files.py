"""The client `aip` and the SDK `import aip` as files: a wheel with both, and a source package that holds the wheel; the
client alone as one file that Python runs.

All need Python 3.9 or newer and nothing else, and hold the same modules as `manage.py aip`, in a package of their own
name so that they can be installed next to a checkout of the platform. A running platform serves them at `/client/`,
`manage.py client --out DIR` writes them:

    pip install http://platform.example/client/ && aip login http://platform.example
    python3 aip.pyz login https://platform.example --username alice

The wheel follows the binary distribution format
https://packaging.python.org/en/latest/specifications/binary-distribution-format/, the source package has a build
backend of its own (PEP 517, `backend-path`), so that pip installs from an address without a file name and needs no
other package for it.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import sys
from pathlib import Path

import aiplatform.client
import aiplatform.lib
from aiplatform import __version__
from aiplatform.lib import archives
from training.programs import sdk_files

HOME = Path(aiplatform.client.__file__).parent
LIB = Path(aiplatform.lib.__file__).parent
SHARED = ("tables.py", "typed.py")  # modules of `aiplatform.lib` that the client imports; standard library only
PACKAGE = "aip_client"  # the name of the package in the files
PYZ = "aip.pyz"
PYPROJECT = """\
[build-system]
requires = []
build-backend = "aip_build"
backend-path = ["."]
"""
BACKEND = """\
import shutil
from pathlib import Path


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return Path(shutil.copy(Path(__file__).with_name("{wheel}"), wheel_directory)).name
"""
START = f"import sys\n\nfrom {PACKAGE}.main import main\n\nsys.exit(main())\n".encode()


def modules() -> dict[str, bytes]:
    """Return the modules of the client by their path, under the name that they have in the files."""
    paths = {path.relative_to(HOME).as_posix(): path for path in sorted(HOME.rglob("*.py"))}
    paths |= {f"lib/{name}": LIB / name for name in ("__init__.py", *SHARED)}
    return {f"{PACKAGE}/{name}": _renamed(path.read_bytes()) for name, path in paths.items()}


def _renamed(code: bytes) -> bytes:
    code = code.replace(b"from aiplatform import __version__\n", f"__version__ = {__version__!r}\n".encode())
    code = code.replace(b"aiplatform.client", PACKAGE.encode())
    return code.replace(b"from aiplatform.lib", f"from {PACKAGE}.lib".encode())


def pyz() -> bytes:
    """Return the client as one file: `python3 aip.pyz jobs list`. The same code makes the same bytes."""
    return archives.small_zip([("__main__.py", START), *modules().items()])


def wheel_name() -> str:
    return f"{PACKAGE}-{__version__}-py3-none-any.whl"


def sdist_name() -> str:
    return f"{PACKAGE}-{__version__}.zip"


def sdist() -> bytes:
    """Return the source package: the wheel, and a build backend that hands it over."""
    name, data = wheel()
    root = f"{PACKAGE}-{__version__}"
    return archives.small_zip(
        [
            (f"{root}/PKG-INFO", _metadata()),
            (f"{root}/pyproject.toml", PYPROJECT.encode()),
            (f"{root}/aip_build.py", BACKEND.format(wheel=name).encode()),
            (f"{root}/{name}", data),
        ]
    )


def wheel() -> tuple[str, bytes]:
    """Return name and bytes of the wheel, which installs the command `aip`."""
    metadata = f"{PACKAGE}-{__version__}.dist-info"
    files = (
        modules()
        | sdk_files.modules()
        | {
            f"{metadata}/METADATA": _metadata(),
            f"{metadata}/WHEEL": _text(
                "Wheel-Version: 1.0", "Generator: aiplatform", "Root-Is-Purelib: true", "Tag: py3-none-any"
            ),
            f"{metadata}/entry_points.txt": _text("[console_scripts]", f"aip = {PACKAGE}.main:main"),
        }
    )
    record = f"{metadata}/RECORD"
    files[record] = _text(
        *(f"{name},sha256={_digest(data)},{len(data)}" for name, data in files.items()), f"{record},,"
    )
    return wheel_name(), archives.small_zip([*files.items()])


def _metadata() -> bytes:
    return _text(
        "Metadata-Version: 2.1",
        f"Name: {PACKAGE.replace('_', '-')}",
        f"Version: {__version__}",
        "Summary: Command-line client and SDK of aiplatform",
        "License: Apache-2.0",
        "Requires-Python: >=3.9",
    )


def _text(*lines: str) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def _digest(data: bytes) -> str:
    """Return the SHA-256 of a file as RECORD states it: base64 for URLs without padding."""
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def write(folder: Path) -> list[Path]:
    """Write single file and wheel into a folder, which is created if it is missing.

    Raises:
        OSError: the folder cannot be written to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    name, data = wheel()
    paths = [folder / PYZ, folder / name]
    for path, content in zip(paths, (pyz(), data), strict=True):
        path.write_bytes(content)
    return paths


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="manage.py client", description="Write the client `aip` as wheel and single file."
    )
    parser.add_argument("folder", type=Path, nargs="?", help="target folder (default: current folder)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="the same as FOLDER")
    options = parser.parse_args(argv)
    folder = options.out or options.folder or Path()
    try:
        paths = write(folder)
    except OSError as exc:
        print(
            f"{exc.filename or folder} cannot be written: {exc.strerror}. Choose another folder.",
            file=sys.stderr,
        )
        return 1
    for path in paths:
        print(path)
    return 0
