"""The client as files that run where the platform is not installed."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile

from aiplatform import __version__
from aiplatform.cli import client_files


def run(*command: str, cwd) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def test_client_runs_from_one_file_without_the_platform(tmp_path):
    [file, _wheel] = client_files.write(tmp_path / "new")

    done = run(sys.executable, "-I", "-S", str(file), "--help", cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert "aip" in done.stdout


def test_client_wheel_installs_the_command(tmp_path):
    [_file, wheel] = client_files.write(tmp_path)
    offline = ("--no-index", "--no-deps", "--disable-pip-version-check", "--target", str(tmp_path / "site"))

    done = run(sys.executable, "-m", "pip", "install", *offline, str(wheel), cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert wheel.name == f"aip_client-{__version__}-py3-none-any.whl"
    assert (tmp_path / "site" / "bin" / "aip").is_file()
    code = "import sys; sys.path.insert(0, 'site'); from aip_client.main import main; sys.exit(main(['--help']))"
    assert run(sys.executable, "-I", "-S", "-c", code, cwd=tmp_path).returncode == 0


def test_client_wheel_lists_each_of_its_files_with_its_digest():
    name, data = client_files.wheel()

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        [record] = [one for one in archive.namelist() if one.endswith("/RECORD")]
        lines = archive.read(record).decode().splitlines()
        assert [line.split(",")[0] for line in lines] == archive.namelist()
        assert all(line.split(",")[1].startswith("sha256=") for line in lines[:-1])
    assert client_files.wheel() == (name, data)


def test_client_says_which_folder_cannot_be_written(tmp_path, capsys):
    (tmp_path / "file").write_text("")

    assert client_files.main([str(tmp_path / "file" / "below")]) == 1
    assert "Choose another folder" in capsys.readouterr().err
