"""Completion of the shells: what words may become, and scripts that the shells accept."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from aiplatform.client.commands.completion import SHELLS, candidates
from aiplatform.client.main import main, parser


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["data"], ["datasets"]),
        (["jobs", "sto"], ["stop"]),
        (["files", "share", ""], []),
        (["train", "submit", "--pres"], ["--preset"]),
        (["completion", ""], ["bash", "fish", "words", "zsh"]),
        (["nonsense", "x"], []),
    ],
)
def test_words_are_completed_from_the_declarations(words, expected):
    assert set(expected) <= set(candidates(words, parser()))
    assert all(found.startswith(words[-1]) for found in candidates(words, parser()))


def test_values_of_an_option_with_choices_are_completed():
    assert set(candidates(["jobs", "list", "--output", ""], parser())) == {"json", "table"}


def test_completion_prints_one_word_per_line(capsys):
    assert main(["completion", "words", "--", "logi"]) == 0

    assert capsys.readouterr().out == "login\n"


@pytest.mark.parametrize("shell", list(SHELLS))
def test_script_is_accepted_by_the_shell(shell, capsys, tmp_path):
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    main(["completion", shell])
    script = tmp_path / "script"
    script.write_text(capsys.readouterr().out)

    done = subprocess.run([shell, "-n", str(script)], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_a_verb(tmp_path, capsys):
    main(["completion", "bash"])
    lines = [
        'aip() { printf "%s\\n" list show; }', capsys.readouterr().out, "COMP_WORDS=(aip jobs s)", "COMP_CWORD=2",
        '_aip; printf "%s " "${COMPREPLY[@]}"',
    ]  # fmt: skip

    done = subprocess.run(["bash", "-c", "\n".join(lines)], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["list", "show"]
