"""Start JupyterLab in a home folder; run by the job itself, as its own user. Standard library only.

    python start.py HOME FOLDER CODE JUPYTER-LAB OPTION…

Makes FOLDER in HOME and copies there what CODE holds and FOLDER does not: what somebody changed stays. The platform
does neither, because a home holds whatever links its owner likes. It listens on a socket in TMPDIR. Without a path
JUPYTER-LAB is looked for where the image has its programs, as in containers, where pip is also told where it may
install. Runs under the Pythons of images, 3.9 and later.
"""

import os
import shutil
import sys
import sysconfig
from pathlib import Path

SOCKET = "jupyter.sock"
OLDEST = (3, 9)
SITE = "site"  # in a folder of packages: where Python finds them, whatever its version


def main() -> None:
    home, folder, code, *argv = sys.argv[1:]
    if sys.version_info < OLDEST:
        sys.exit("The python3 of this image is older than 3.9. Take an image with a newer one and JupyterLab.")
    argv = resolve_program(argv)
    if packages := os.environ.get("AIP_PACKAGES"):
        configure_pip(Path(packages))
    workdir = Path(home) / folder
    workdir.mkdir(parents=True, exist_ok=True)
    if code:
        copy_missing(Path(code), workdir)
    tmp = Path(os.environ["TMPDIR"])
    own = tmp / "jupyter"  # of kernels and their keys; homes may lie on storage without sockets and locks
    own.mkdir(mode=0o700, exist_ok=True)
    (tmp / SOCKET).unlink(missing_ok=True)
    os.environ["JUPYTER_RUNTIME_DIR"] = str(own)
    os.chdir(workdir)
    os.execv(argv[0], [*argv, f"--ServerApp.sock={tmp / SOCKET}"])  # noqa: S606 - no shell is wanted


def resolve_program(argv: "list[str]") -> "list[str]":
    """Return the command line with the program's local name; exit with instructions if it is missing."""
    name, *options = argv
    if "/" in name:
        if os.access(name, os.X_OK):
            return argv
        sys.exit(f"This image brings no JupyterLab ({name}). Build one with jupyterlab among its requirements.")
    if not Path("/bin/bash").exists():  # of terminals and kernels
        options = [word.replace("/bin/bash", "/bin/sh") for word in options]
        os.environ["SHELL"] = "/bin/sh"
    if program := shutil.which(name):
        return [program, *options]
    program = shutil.which("jupyter")
    if program and Path(program).resolve().with_name(name).exists():
        return [program, "lab", *options]
    sys.exit(
        "This container image has no jupyter-lab on its PATH. Choose an image with JupyterLab, or build one from it in "
        "which pip install jupyterlab was run."
    )


def configure_pip(packages: Path) -> None:
    """Make pip install into the persistent folder: the image itself is not writable for users.

    A virtual environment takes no packages of a user, so there they get a prefix of their own.
    """
    if not os.access(packages, os.W_OK):
        return
    own = sys.prefix != sys.base_prefix
    where = f"prefix = {packages}" if own else "user = true"
    (packages / "pip.conf").write_text(f"[install]\n{where}\n")
    base = {"base": str(packages), "platbase": str(packages)}
    user = {"userbase": str(packages)}
    site_packages = (
        sysconfig.get_path("purelib", vars=base) if own else sysconfig.get_path("purelib", "posix_user", user)
    )
    link = packages / SITE
    if link.is_symlink() or not link.exists():
        link.unlink(missing_ok=True)
        link.symlink_to(os.path.relpath(site_packages, packages))


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
