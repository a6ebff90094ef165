"""Start JupyterLab in a home folder; run by the job itself, as its own user. Standard library only.

    python start.py HOME FOLDER CODE JUPYTER-LAB OPTION…

Makes FOLDER in HOME and copies there what CODE holds and FOLDER does not: what somebody changed stays. The platform
does neither, because a home holds whatever links its owner likes. It listens on a socket in TMPDIR.
"""

import os
import sys
from pathlib import Path

SOCKET = "jupyter.sock"


def main() -> None:
    home, folder, code, *argv = sys.argv[1:]
    if not os.access(argv[0], os.X_OK):
        sys.exit(f"This image brings no JupyterLab ({argv[0]}). Build one with jupyterlab among its requirements.")
    place = Path(home) / folder
    place.mkdir(parents=True, exist_ok=True)
    if code:
        copy_missing(Path(code), place)
    tmp = Path(os.environ["TMPDIR"])
    own = tmp / "jupyter"  # of kernels and their keys; homes may lie on storage without sockets and locks
    own.mkdir(mode=0o700, exist_ok=True)
    (tmp / SOCKET).unlink(missing_ok=True)
    os.environ["JUPYTER_RUNTIME_DIR"] = str(own)
    os.chdir(place)
    os.execv(argv[0], [*argv, f"--ServerApp.sock={tmp / SOCKET}"])  # noqa: S606 - no shell is wanted


def copy_missing(source: Path, target: Path) -> None:
    """Copy files that are not there yet, with their modes; links stay links."""
    for path, folders, files in os.walk(source):
        here = target / Path(path).relative_to(source)
        here.mkdir(parents=True, exist_ok=True)
        for name in [*files, *(name for name in folders if (Path(path) / name).is_symlink())]:
            copy_one(Path(path) / name, here / name)


def copy_one(source: Path, target: Path) -> None:
    if os.path.lexists(target):
        return
    if source.is_symlink():
        target.symlink_to(source.readlink())
        return
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    beside.write_bytes(source.read_bytes())
    beside.chmod(0o755 if os.access(source, os.X_OK) else 0o644)
    beside.rename(target)


if __name__ == "__main__":
    main()
