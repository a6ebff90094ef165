"""The client as the platform serves it: installed by pip from an address, on the oldest Python that it supports."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from django.test import Client

from aiplatform import __version__
from aiplatform.cli import client_files
from aiplatform.client import version

OLDEST = (3, 9)


def test_client_uses_nothing_newer_than_the_oldest_python(tmp_path):
    (tmp_path / client_files.wheel_name()).write_bytes(client_files.wheel()[1])
    with zipfile.ZipFile(tmp_path / client_files.wheel_name()) as archive:
        archive.extractall(tmp_path / "client")
    for path in (tmp_path / "client").rglob("*.py"):
        ast.parse(path.read_text(), feature_version=OLDEST)
        assert [ast.unparse(node) for node in evaluated_unions(ast.parse(path.read_text()))] == [], path.name

    command = (Path(sys.executable).with_name("vermin"), f"-t={OLDEST[0]}.{OLDEST[1]}-", "--violations", "--no-tips")
    found = subprocess.run([*command, str(tmp_path / "client")], capture_output=True, text=True, check=False)

    newer = [line for line in found.stdout.splitlines() if "requires" in line and "3.1" in line]
    assert newer == []
    assert "Minimum required versions: 3." in found.stdout  # it looked


def evaluated_unions(tree: ast.Module) -> list[ast.AST]:
    """Return unions of types written with `|` that are evaluated: Python 3.9 has them in annotations alone."""
    names = {"str", "int", "float", "bool", "dict", "list", "tuple", "Path", "None", "Callable"}
    annotations = {
        id(inner)
        for node in ast.walk(tree)
        for field in ("annotation", "returns")
        if (found := getattr(node, field, None)) is not None
        for inner in ast.walk(found)
    }
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.BitOr)
        and id(node) not in annotations
        and {ast.unparse(node.left).split("[")[0], ast.unparse(node.right).split("[")[0]} & names
    ]


def old_python() -> str | None:
    home = Path.home() / ".pyenv/versions"
    found = [str(path) for path in sorted(home.glob("3.9.*/bin/python3"))]
    return shutil.which("python3.9", path=os.pathsep.join(["/usr/bin", "/usr/local/bin"])) or next(iter(found), None)


@pytest.mark.skipif(old_python() is None, reason="needs Python 3.9")
def test_client_runs_on_the_oldest_python(tmp_path):
    [file, _wheel] = client_files.write(tmp_path)

    for words in ([], ["train", "submit"], ["login"], ["datasets"], ["evaluate", "start"], ["ssh"]):
        done = subprocess.run(
            [old_python(), "-I", "-S", file, *words, "--help"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


@pytest.mark.django_db(transaction=True)
@pytest.mark.sockets("pip downloads from the server")
def test_pip_installs_the_client_from_the_address_of_the_platform(live_server, tmp_path):
    offline = ("--no-deps", "--disable-pip-version-check", "--no-cache-dir", "--target", str(tmp_path / "site"))
    env = {**os.environ, "PIP_NO_INDEX": "1", "no_proxy": "*"}

    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", *offline, f"{live_server.url}/client/"],
        capture_output=True, text=True, check=False, env=env, cwd=tmp_path,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert f"aip-client-{__version__}" in done.stdout
    assert (tmp_path / "site" / "bin" / "aip").is_file()


@pytest.mark.django_db
def test_client_page_and_files_are_public():
    browser = Client(headers={"Accept": "text/html,*/*"})
    page = browser.get("/client/").content.decode()

    assert "pip install http://testserver/client/" in page
    for name in (client_files.PYZ, client_files.wheel_name(), client_files.sdist_name()):
        response = browser.get(f"/client/{name}")
        assert response.status_code == 200
        assert response["Content-Disposition"] == f'attachment; filename="{name}"'
    assert browser.get("/client/other.whl").status_code == 404


def test_client_of_another_version_says_so_once_a_day(home, capsys):
    version.note("9.1.0", "https://platform.example")
    first = capsys.readouterr()
    version.note("9.1.0", "https://platform.example")

    assert "pip install --upgrade https://platform.example/client/" in first.err
    assert "the platform is 9.1.0" in first.err
    assert first.out == capsys.readouterr().err == ""


def test_client_of_the_same_series_says_nothing(home, capsys):
    major, minor, _patch = __version__.split(".")

    version.note(f"{major}.{minor}.99", "https://platform.example")
    version.note(None, "https://platform.example")

    assert capsys.readouterr().err == ""


def test_api_names_the_version_that_the_client_compares(client):
    assert client.get("/api/v1/me/")["X-Aip-Version"] == __version__
