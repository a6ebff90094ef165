"""A bundle installs without a network what its lock says, or says in a sentence why it does not."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import replace
from importlib.metadata import distribution
from pathlib import Path

import pytest

from aiplatform import __version__
from aiplatform.cli import bootstrap, bundle, bundling, doctor

LINES = ["tiny==1.0"]
LOCK = f"# a comment\ntiny==1.0\n{bootstrap.TESTS_FROM_HERE}\nprobe==2.0\n"
GIT = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]


def wheel(folder: Path, name: str, version: str = "1.0", *, content: str = "") -> Path:
    """A wheel with one module."""
    folder.mkdir(parents=True, exist_ok=True)
    path, info = folder / f"{name}-{version}-py3-none-any.whl", f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": content or f"version = {version!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for inside, text in files.items():
            archive.writestr(inside, text)
        archive.writestr(f"{info}/RECORD", "".join(f"{inside},,\n" for inside in [*files, f"{info}/RECORD"]))
    return path


def pip_wheel(folder: Path) -> Path:
    """The pip of this environment, packed again."""
    pip = distribution("pip")
    path = folder / f"pip-{pip.version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file in pip.files or ():
            if not str(file).startswith("..") and file.suffix != ".pyc":
                archive.write(str(file.locate()), str(file))
    return path


@pytest.fixture
def source(tmp_path):
    """A clone of a small program."""
    root = tmp_path / "source"
    (root / "aiplatform").mkdir(parents=True)
    (root / bootstrap.LOCK).write_text(LOCK)
    (root / bootstrap.HASHES).write_text("")
    (root / "manage.py").write_text("print('a program')\n")
    (root / "aiplatform" / "run.sh").write_text("#!/bin/sh\n")
    (root / "aiplatform" / "run.sh").chmod(0o755)
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "Begin"]):
        subprocess.run([*GIT, "-C", str(root), *words], check=True)
    (root / "secret.env").write_text("PASSWORD=x")  # git does not know it
    return root


@pytest.fixture
def fetched(monkeypatch):
    """Wheels come from nowhere."""

    def fetch(folder: Path, lines: list[str], hashes: Path) -> list[Path]:
        return [pip_wheel(wheel(folder, line.partition("==")[0]).parent) for line in lines[:1]] + [
            wheel(folder, *line.split("==")) for line in lines
        ]

    monkeypatch.setattr(bundling, "fetch", fetch)


@pytest.fixture
def made(source, fetched, tmp_path):
    return bundling.make(source, tmp_path / "out", extras=[])


def unpacked(made: Path, to: Path) -> Path:
    with tarfile.open(made) as tar:
        tar.extractall(to, filter="data")
    return to / bundling.top()


def test_bundle_make_packs_what_git_tracks_and_a_seal_of_each_file(made, source):
    with tarfile.open(made) as tar:
        members = tar.getmembers()
    inside = [member.name.partition("/")[2] for member in members]
    manifest = bundle.Bundle(made).manifest

    assert made.name.startswith(f"aiplatform-{__version__}-cp3")
    assert inside[0] == bundle.MANIFEST
    assert set(inside[1:]) == set(manifest.files)
    assert {"manage.py", "aiplatform/run.sh", "bundle/wheels/tiny-1.0-py3-none-any.whl"} < set(inside)
    assert "secret.env" not in inside
    assert {member.mode for member in members if member.name.endswith("run.sh")} == {0o755}
    assert {(member.uid, member.gid, member.uname) for member in members} == {(0, 0, "")}
    assert str(source).encode() not in made.read_bytes()
    assert list(made.parent.iterdir()) == [made]


def test_bundle_made_twice_of_the_same_is_the_same(made, source, tmp_path):
    again = bundling.make(source, tmp_path / "again", extras=[])
    of_unpacked = bundling.make(unpacked(made, tmp_path / "there"), tmp_path / "third", extras=[])

    # the wheel of pip is zipped anew each time, so the sources and their times are what is compared
    for other in (again, of_unpacked):
        with tarfile.open(made) as one, tarfile.open(other) as two:
            assert [(m.name, m.mtime, m.mode) for m in one] == [(m.name, m.mtime, m.mode) for m in two]
        assert bundle.Bundle(made).manifest.source == bundle.Bundle(other).manifest.source


def test_bundle_make_says_that_files_were_changed(made, source, tmp_path, capsys):
    (source / "manage.py").write_text("print('changed')\n")

    other = bundling.make(source, tmp_path / "other", extras=[])

    assert not bundle.Bundle(made).manifest.source.endswith("+")
    assert bundle.Bundle(other).manifest.source.endswith("+")
    assert "changed since the last commit" in capsys.readouterr().err


@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit, OSError])
def test_bundle_make_that_is_ended_leaves_nothing(source, tmp_path, monkeypatch, end):
    def fetch(folder: Path, lines: list[str], hashes: Path) -> list[Path]:
        wheel(folder, "tiny")
        raise end

    monkeypatch.setattr(bundling, "fetch", fetch)

    with pytest.raises(end):
        bundling.make(source, tmp_path / "out", extras=[])
    assert list((tmp_path / "out").iterdir()) == []


def test_bundle_make_refuses_a_folder_that_is_no_clone(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(bundling, "ROOT", tmp_path)

    assert bundling.main(["--to", str(tmp_path / "out")]) == 1
    assert "neither a clone nor an unpacked bundle" in capsys.readouterr().err


def test_bundle_fetch_refuses_a_line_without_a_wheel(tmp_path, monkeypatch):
    monkeypatch.setattr(bootstrap, "pip", lambda *_, **__: wheel(tmp_path / "wheels", "tiny"))
    hashes = tmp_path / bootstrap.HASHES
    hashes.write_text("")

    with pytest.raises(bundle.Refused, match="no wheel of absent==3"):
        bundling.fetch(tmp_path / "wheels", ["tiny==1.0", "absent==3"], hashes)


def test_bundle_fetch_takes_packages_with_hashes_by_a_call_that_checks_them(tmp_path, monkeypatch):
    calls = []

    def pip(python, arguments, **_):
        calls.append(arguments)
        for line in ("tiny==1.0", "probe==2.0", f"pip=={distribution('pip').version}"):
            wheel(tmp_path / "wheels", *line.split("=="))

    monkeypatch.setattr(bootstrap, "pip", pip)
    hashes = tmp_path / bootstrap.HASHES
    hashes.write_text(f"tiny==1.0 --hash=sha256:{'0' * 64}\n")

    bundling.fetch(tmp_path / "wheels", ["tiny==1.0", "probe==2.0"], hashes)

    assert len(calls) == 2
    assert calls[0][-len(bootstrap.with_hashes(hashes)) :] == bootstrap.with_hashes(hashes)
    assert "tiny==1.0" not in calls[1]


@pytest.mark.parametrize(
    ("name", "needed"),
    [
        ("a-1-py3-none-any.whl", ""),
        ("a-1-cp311-cp311-manylinux2014_x86_64.manylinux_2_28_x86_64.whl", "2.17"),
        ("a-1-cp311-cp311-manylinux_2_5_x86_64.manylinux1_x86_64.whl", "2.5"),
        ("a-1-cp311-cp311-linux_x86_64.whl", "2.36"),
    ],
)
def test_bundle_glibc_for_reads_a_wheels_name(name, needed):
    assert bundle.glibc_for(name, "2.36") == needed


@pytest.mark.parametrize(
    ("told", "packages", "gate", "sentence"),
    [
        ({"python": "CPython 3.99"}, LINES, False, r"for CPython 3\.99, this is .*: start it with python3\.99"),
        ({"kind": "Linux riscv64"}, LINES, False, "for Linux riscv64, this is"),
        ({"glibc": "99.1"}, LINES, False, r"need glibc 99\.1"),
        ({}, ["tiny==1.1", "other==2"], False, r"modified: and needs tiny==1\.1, other==2\. Use the source inside"),
        ({}, [*LINES, "probe==2.0"], True, "--extra gate"),
    ],
)
def test_bundle_that_does_not_fit_says_why(made, told, packages, gate, sentence):
    opened = bundle.Bundle(made)
    opened.manifest = replace(opened.manifest, machine=replace(opened.manifest.machine, **told))

    with pytest.raises(bundle.Refused, match=sentence):
        opened.see_that_it_fits(packages, __version__, gate=gate)


@pytest.mark.parametrize(("version", "age"), [("0.0.9", "older"), ("99.0", "newer")])
def test_bundle_of_another_source_says_which_is_older(made, version, age):
    opened = bundle.Bundle(made)

    with pytest.raises(bundle.Refused, match=f"here is {version}, {age} than the bundle's {__version__}"):
        opened.see_that_it_fits(["tiny==1.1"], version)
    opened.see_that_it_fits(LINES, version)  # the same packages: a mended source installs from it, too


def test_bundle_with_another_byte_in_a_wheel_is_damaged(made, tmp_path):
    content = made.read_bytes()
    place = content.index(b"version = '1.0'")
    made.write_bytes(content[:place] + b"V" + content[place + 1 :])

    with (
        pytest.raises(bundle.Refused, match="tiny-1\\.0-py3-none-any\\.whl differs from the packed file"),
        bundle.Bundle(made).wheels(tmp_path),
    ):
        pass
    assert list(tmp_path.glob(".aiplatform-wheels-*")) == []


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_bundle_that_was_copied_in_part_is_damaged(made, tmp_path, share):
    content = made.read_bytes()
    made.write_bytes(content[: int(len(content) * share)])

    with pytest.raises(bundle.Refused, match="is damaged"), bundle.Bundle(made).wheels(tmp_path):
        pass


def test_bundle_unpacked_and_without_a_wheel_is_damaged(made, tmp_path):
    folder = unpacked(made, tmp_path / "there")
    (folder / bundle.WHEELS / "tiny-1.0-py3-none-any.whl").unlink()

    with (
        pytest.raises(bundle.Refused, match=r"tiny-1\.0-py3-none-any\.whl is missing"),
        bundle.Bundle(folder).wheels(tmp_path),
    ):
        pass


def test_bundle_that_is_none_is_refused(tmp_path):
    (tmp_path / "a.tar").write_bytes(b"not a tar")
    with tarfile.open(tmp_path / "b.tar", "w") as tar:
        tar.addfile(tarfile.TarInfo("x/y"), io.BytesIO())

    for name, sentence in (("a.tar", "not a bundle"), ("b.tar", "not a bundle"), ("c.tar", "does not exist")):
        with pytest.raises(bundle.Refused, match=sentence):
            bundle.Bundle(tmp_path / name)


@pytest.mark.parametrize(
    ("argv", "found"),
    [
        (["--port", "1"], None),
        (["--bundle", "a.tar", "--port", "1"], Path("a.tar")),
        (["--once", "--bundle=a.tar"], Path("a.tar")),
        (["unit", "--", "--bundle=a.tar"], None),
        (["--bundle"], None),
    ],
)
def test_bundle_asked_reads_a_command_line(argv, found):
    assert bundle.path_from_argv(argv) == found


@pytest.mark.long
@pytest.mark.parametrize("folder", [False, pytest.param(True, marks=pytest.mark.proof)])
def test_bootstrap_build_from_a_bundle_asks_nobody_else(made, tmp_path, monkeypatch, folder):
    """A real environment, made without the pip of this Python and without its settings."""
    other = wheel(tmp_path / "elsewhere", "tiny", content="raise SystemExit('not from the bundle')\n").parent
    monkeypatch.setenv("PIP_FIND_LINKS", str(other))
    monkeypatch.setenv("PIP_TARGET", str(tmp_path / "elsewhere"))
    venv = tmp_path / "here" / ".venv"
    venv.parent.mkdir()

    opened = bundle.Bundle(unpacked(made, tmp_path / "there") if folder else made)
    bootstrap.build_from(opened, venv, LINES, gate=False)

    done = subprocess.run(
        [venv / "bin/python", "-c", "import tiny, pip; print(tiny.version, pip.__file__)"],
        capture_output=True, text=True, check=True, cwd=tmp_path,
    )  # fmt: skip
    assert done.stdout.startswith(f"1.0 {venv}")
    assert bootstrap.origin(venv) == f"the bundle {opened.path.name} (aiplatform {__version__})"
    assert [path.name for path in venv.parent.iterdir()] == [".venv"]


def test_bootstrap_build_from_a_bundle_needs_room(made, tmp_path, monkeypatch):
    monkeypatch.setattr(bundle, "free_bytes", lambda folder: 1000)

    with pytest.raises(SystemExit, match=r"0.0 GiB are free at"):
        bootstrap.build_from(bundle.Bundle(made), tmp_path / ".venv", LINES, gate=False)
    assert not (tmp_path / ".venv").exists()


def test_bootstrap_ends_a_bundle_that_does_not_do_in_its_sentence(tmp_path, capsys):
    (tmp_path / bootstrap.LOCK).write_text(LOCK)

    with pytest.raises(SystemExit, match="does not exist"):
        bootstrap.ensure(tmp_path, with_tests=False, bundle_path=tmp_path / "gone.tar")


def test_bootstrap_takes_the_bundle_that_the_program_was_unpacked_from(made, tmp_path):
    folder = unpacked(made, tmp_path / "there")

    found = bundle.find(None, folder)

    assert found is not None
    assert found.path == folder
    assert bundle.find(None, tmp_path) is None


def test_doctor_says_where_the_packages_came_from(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    before = next(doctor._python()).text
    bootstrap.note_origin(tmp_path, "the bundle a.tar (aiplatform 0.1.0)")
    bootstrap.note_origin(tmp_path, "the package index")

    assert "packages" not in before
    assert next(doctor._python()).text.endswith(
        "packages from the bundle a.tar (aiplatform 0.1.0), then the package index"
    )
