"""Select tests for changed files, by the import graph: `python3 manage.py test --changed [BASE]`.

Almost everything imports almost everything else through settings and routes, so "imported at any distance" would select
all tests. Instead tests are ranked by how close they are to a change, and chosen in that order until the time for a
quick answer is used up. What is chosen, why, and what was left out is printed; the whole gate has the last word.
"""

from __future__ import annotations

import functools
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from aiplatform.cli.gate_steps import APPS, ROOT

#: Seconds of tests to choose, one process; two workers run them. Time to start and collect comes on top.
TIME_S = 60.0
#: Expected seconds of a test, by what its file names, where an earlier run has left no times.
USUAL_S, SOCKETS_S = 0.12, 0.5
#: A change of these may change any test.
EVERYTHING = (
    "manage.py", "pyproject.toml", "requirements.lock", "requirements.hashes", "aiplatform/settings.py",
    "tests/settings.py", "tests/conftest.py", "tests/worker_pool.py", "tests/cpu_time.py",
)  # fmt: skip
#: Rules of the whole code that take a second or less; others are chosen where they name a changed file.
RULES = (
    "tests/architecture/test_files_are_short.py", "tests/architecture/test_one_registry.py",
    "tests/architecture/test_sweeps_exist.py", "tests/architecture/test_tests_stand_alone.py",
)  # fmt: skip
#: Folders of tests that need browsers, whole platforms or GPUs.
SLOW = ("browser", "chaos", "journeys", "gpu")
#: Words in the names of files that test pages.
PAGE_WORDS = frozenset({"pages", "page", "faces"})
#: Ranks, the closest first.
CHANGED, DIRECT, NAMED, RULE, INDIRECT, NEIGHBOR = range(6)


class Choice(NamedTuple):
    """A file of tests, how close it is to a change, and why it was chosen."""

    rank: float  # a word that the names of test and changed file share makes a neighbor closer
    file: str
    reason: str


class Selection(NamedTuple):
    """What to run for a change."""

    steps: list[str]
    files: list[str]
    lines: list[str]  # to print
    everything: bool = False


def changed_files(base: str = "") -> list[str]:
    """Return the files that differ from a commit, with those that are not committed yet.

    Args:
        base: commit or branch; empty: where this branch left `main`, or the last commit on `main` itself.

    Raises:
        ValueError: there is no such commit.
    """
    if not base:
        fork = _git("merge-base", "HEAD", "main")
        head = _git("rev-parse", "HEAD")
        base = fork[0] if fork and fork != head else "HEAD"
    if not _git("rev-parse", "--verify", "--quiet", f"{base}^{{commit}}"):
        raise ValueError(f"There is no commit {base!r}. Name a branch or commit, or commit first.")
    tracked = _git("diff", "--name-only", base, "--")
    return sorted({*tracked, *_git("ls-files", "--others", "--exclude-standard")})


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


def select(changed: list[str], seconds: dict[str, float] | None = None) -> Selection:
    """Choose steps and test files for changed files.

    Args:
        seconds: expected time of each test file, as an earlier run measured it.
    """
    if reasons := [name for name in changed if name in EVERYTHING]:
        return Selection(
            [], [], [f"{', '.join(reasons)} changed, which may change any test: the whole gate runs."], True
        )
    paths = [
        path for path in sorted((ROOT / "tests").rglob("test_*.py")) if path.relative_to(ROOT).parts[1] not in SLOW
    ]
    texts = {str(path.relative_to(ROOT)): path.read_text() for path in paths}
    choices = _closest(choice for name in changed for choice in _choices(name, texts))
    files, late, spent_s = [], [], 0.0
    for choice in choices:
        cost_s = (seconds or {}).get(choice.file) or _expected_s(texts[choice.file])
        if choice.rank > CHANGED and spent_s + cost_s > TIME_S:
            late.append(choice)
            continue
        spent_s += cost_s
        files.append(choice)
    lines = [f"{len(changed)} changed files, {len(files)} test files chosen:"]
    lines += [f"  {choice.file}: {choice.reason}" for choice in files]
    if late:
        lines.append(f"{len(late)} more are related, but would take longer than a minute; the first of them:")
        lines += [f"  {choice.file}: {choice.reason}" for choice in late[:5]]
    return Selection(_steps(changed), [choice.file for choice in files], lines)


def _steps(changed: list[str]) -> list[str]:
    """Return the static steps that read the changed files, without `types`, which takes longer than a minute."""
    wanted = {
        "lint": any(name.endswith(".py") for name in changed),
        "templates": any(name.endswith(".html") for name in changed),
        "scripts": any(name.endswith((".js", ".css")) for name in changed),
        "imports": any(name.endswith(".py") and name.split("/")[0] in APPS for name in changed),
        "migrations": any(re.search(r"models|migrations", name) for name in changed if name.endswith(".py")),
    }
    return [name for name, is_wanted in wanted.items() if is_wanted]


def _closest(choices: Iterable[Choice]) -> list[Choice]:
    """Keep the closest reason of each file; the closest files first."""
    best: dict[str, Choice] = {}
    for choice in sorted(choices):
        best.setdefault(choice.file, choice)
    return sorted(best.values())


def _expected_s(text: str) -> float:
    tests = len(re.findall(r"^ *(?:async )?def test_", text, re.MULTILINE)) * (3 if "parametrize" in text else 1)
    return 0.2 + tests * (SOCKETS_S if "mark.sockets" in text else USUAL_S)


def _choices(changed: str, texts: dict[str, str]) -> list[Choice]:
    """Return the test files that are close to one changed file."""
    if changed in texts:
        return [Choice(CHANGED, changed, "changed")]
    path = Path(changed)
    if path.name == "conftest.py":
        return [Choice(CHANGED, file, f"uses {changed}") for file in texts if Path(file).is_relative_to(path.parent)]
    if "locale" in path.parts:
        return _naming(texts, r"translation|locale", RULE, changed, only="test_translations")
    if path.suffix == ".md":
        return _naming(texts, rf"{re.escape(path.name)}|docs\b", NAMED, changed, only="docs")
    if "migrations" in path.parts:
        return _naming(texts, "migrat", DIRECT, changed, only="migrations")
    if path.suffix in {".html", ".js", ".css"}:
        return _of_page(path, texts)
    if path.suffix == ".py" and path.parts[0] in {*APPS, "tests"}:
        return [*_of_module(changed, texts), *_rules(texts)]
    return _naming(texts, re.escape(path.name), NAMED, changed)


def _naming(texts: dict[str, str], pattern: str, rank: int, changed: str, only: str = "") -> list[Choice]:
    """Choose the files whose text matches, perhaps only those whose own name has a word."""
    found = [file for file, text in texts.items() if only in file and re.search(pattern, text)]
    return [Choice(rank, file, f"names {changed}") for file in found]


def _rules(texts: dict[str, str]) -> list[Choice]:
    return [Choice(RULE, file, "a rule of the whole code") for file in RULES if file in texts]


def _of_module(changed: str, texts: dict[str, str]) -> list[Choice]:
    """Choose the tests that import a module, that are named like it, that import its importers, and its neighbors."""
    graph = _graph()
    module = changed.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    direct = graph.find_modules_that_directly_import(module) if module in graph.modules else set()
    choices = [Choice(DIRECT, file, f"imports {module}") for file in _files(direct, texts)]
    for importer in sorted(direct):
        found = _files(graph.find_modules_that_directly_import(importer), texts)
        helper = importer.startswith("tests.")
        rank = DIRECT if helper and not importer.rpartition(".")[2].startswith("test_") else INDIRECT
        choices += [Choice(rank, file, f"imports {importer}, which imports {module}") for file in found]
    stem = Path(changed).stem
    app = Path(changed).parts[0]
    choices += [
        Choice(NAMED, file, f"is named like {module}")
        for file in texts
        if len(stem) > 3 and f"test_{stem}" in Path(file).name and f"tests/{app}" in file
    ]
    if app != "tests":
        neighbors = [file for file in texts if file.startswith(f"tests/{app}/")]
        choices += [Choice(NEIGHBOR - 0.1 * _shared(changed, file), file, f"tests of {app}") for file in neighbors]
    return choices


def _shared(changed: str, file: str, more: frozenset[str] = frozenset()) -> int:
    """Count the words that the names of a changed file and of a test file have in common, at most nine."""
    words = set(re.split(r"[/_.]", changed)) | more
    return min(9, len(words.intersection(re.split(r"[/_.]", file)) - {"test", "tests", "py", "html"}))


@functools.cache
def _graph() -> Any:
    import grimp

    return grimp.build_graph(*APPS, "tests", cache_dir=str(ROOT / ".test_cache" / "imports"))


def _files(modules: Iterable[str], texts: dict[str, str]) -> list[str]:
    return [file for module in modules if (file := f"{module.replace('.', '/')}.py") in texts]


def _of_page(path: Path, texts: dict[str, str]) -> list[Choice]:
    """Choose the tests that name a template, script or style sheet, and those of the views that render it."""
    names = {"/".join(path.parts[-2:])}
    pages = {str(page.relative_to(ROOT)): page.read_text() for page in sorted((ROOT / "templates").rglob("*.html"))}
    including = [name for name, text in pages.items() if any(part in text for part in names)]
    names |= {"/".join(Path(name).parts[-2:]) for name in including}
    choices = [choice for name in sorted(names) for choice in _naming(texts, re.escape(name), DIRECT, name)]
    for app in APPS:
        for source in sorted((ROOT / app).rglob("*.py")):
            text = source.read_text()
            if any(name in text for name in names):
                module = str(source.relative_to(ROOT))
                shows = f", where {module} shows {path.name}"
                choices += [
                    one._replace(
                        rank=one.rank - 0.1 * _shared(str(path), one.file, PAGE_WORDS), reason=one.reason + shows
                    )
                    for one in _of_module(module, texts)
                ]
    return choices
