"""Modules, files, commands, options, variables and API paths that the documents name exist."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import shlex
from functools import cache
from pathlib import Path

from django.core.management import get_commands

from accounts.access.permissions import Action
from aiplatform import env
from aiplatform.client.main import parser
from manage import ALIASES
from tests.architecture.code import ROOT, text
from tests.architecture.documents import PRESENT, REPOSITORY, SITE, TOP, name
from tests.cases import case_table

CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
FILE = re.compile(r"(?<![\w./<>*{}$-])(?:[\w-]+/)*[\w-]+\.(?:py|js|html|css|toml)\b(?!\.)")
DOTTED = re.compile(r"(?<![\w./-])[a-z_]\w*(?:\.\w+)+")
COMMAND = re.compile(r"(?<!from )\baip ([a-z][a-z-]*(?: [a-z][a-z|-]*)?)([^`\n#|&]*)")
OPTION = re.compile(r"(?<=\s)--[a-z][a-z-]*")
API_PATH = re.compile(r"/api/v1/[\w/{}-]*")
VARIABLE = re.compile(r"\bAIP_[A-Z0-9_]*[A-Z0-9]\b")
EXTRA = (("manage.py",), ("pyproject.toml",))  # files of the root folder
#: Files of users, of runs and of packages, which are not in the repository.
EXAMPLES = {
    "train.py", "nightly.py", "run.py", "report.py", "metrics.py", "download.py", "use/predict.js", "report.html",
}  # fmt: skip


@cache
def known_paths() -> frozenset[str]:
    """Return the ends of all paths of the repository: `a/b.py` is there as `a/b.py` and `b.py`."""
    paths = [path.relative_to(ROOT).parts for folder in TOP for path in (ROOT / folder).rglob("*.*")]
    return frozenset("/".join(parts[start:]) for parts in [*paths, *EXTRA] for start in range(len(parts)))


def code_of(document: Path) -> list[str]:
    return CODE.findall(document.read_text())


def anchors(document: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def is_known(dotted: str) -> bool:
    """Whether a dotted name is a module or a name that occurs in one."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        base = ROOT.joinpath(*parts[:length])
        module = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
        if base.is_dir() and length == len(parts):
            return True
        if module.is_file():
            return length == len(parts) or re.search(rf"\b{parts[length]}\b", module.read_text()) is not None
    return False


@cache
def commands() -> dict[str, dict[str, frozenset[str]]]:
    """Return the options of each `aip` command: noun → verb → options; the verb is empty where a noun has none."""

    def children(of: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
        actions = [action for action in of._actions if isinstance(action, argparse._SubParsersAction)]
        return dict(actions[0].choices) if actions else {}

    def options(of: argparse.ArgumentParser) -> frozenset[str]:
        own = frozenset(option for action in of._actions for option in action.option_strings)
        return own.union(*(options(child) for child in children(of).values()))

    nouns = children(parser())
    for noun in nouns.values():
        noun.format_help()  # a noun adds its verbs when it is used
    return {
        name: {verb: options(child) for verb, child in (children(noun) or {"": noun}).items()}
        for name, noun in nouns.items()
    }


@case_table("document", PRESENT, ids=name)
def test_documents_name_files_that_exist(document):
    files = {path for code in code_of(document) for path in FILE.findall(code)}

    assert sorted(path for path in files if path not in known_paths() and path not in EXAMPLES) == []


@case_table("document", PRESENT, ids=name)
def test_documents_name_modules_that_exist(document):
    codes = {action.value for action in Action} | set((ROOT / "tests/architecture/task_names.txt").read_text().split())
    dotted = {word for code in code_of(document) for word in DOTTED.findall(code)}
    ours = {
        word for word in dotted if word.split(".")[0] in TOP and not word.endswith((".md", ".json", ".env", ".txt"))
    }

    assert sorted(word for word in ours if not is_known(word) and word not in codes) == []


@case_table("document", PRESENT, ids=name)
def test_documents_name_commands_of_aip_that_exist(document):
    wrong = []
    for code in code_of(document):
        for words, rest in COMMAND.findall(code):
            noun, _, verbs = words.partition(" ")
            if noun not in commands():
                wrong.append(f"aip {words}")
                continue
            there = commands()[noun]
            named = [verb for verb in verbs.split("|") if verb] if "" not in there else [""]
            wrong += [f"aip {noun} {verb}" for verb in named if verb not in there]
            known = frozenset().union(*(there.get(verb, frozenset()) for verb in named or there))
            if " -- " not in rest:
                wrong += [f"aip {words} {option}" for option in OPTION.findall(rest) if option not in known]

    assert wrong == []


SHELL = re.compile(r"^```sh\n(.*?)^```", re.DOTALL | re.MULTILINE)
COMMAND_LINE = re.compile(r"(?:^|\$\(|&& )(aip .*?)(?=\)$|\s&&|$)")
MANAGE = re.compile(r"manage\.py ([a-z][a-z_-]*)")


def shell_lines(document: Path) -> list[str]:
    """Return the lines of the shell examples of a document."""
    return "".join(SHELL.findall(document.read_text())).replace("\\\n", " ").splitlines()


def refusal(line: str) -> str:
    """Return why `aip` refuses the words of a command line; "" if it accepts them."""
    words = shlex.split(line, comments=True)
    ends = [words.index(end) for end in (">", ">>", "|") if end in words]
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors):
        try:
            unknown = parser().parse_known_args(words[1 : min(ends, default=len(words))])[1]
        except SystemExit:
            return "" if "No such file" in errors.getvalue() else errors.getvalue()  # files of the reader
    return f"unknown: {unknown}" if unknown else ""


@case_table("document", [document for document in PRESENT if name(document).startswith(SITE)], ids=name)
def test_command_lines_of_the_help_site_are_accepted(document):
    lines = [match for line in shell_lines(document) for match in COMMAND_LINE.findall(line)]

    assert [(line, why) for line in lines if (why := refusal(line))] == []


@case_table("document", PRESENT, ids=name)
def test_documents_name_commands_of_manage_py_that_exist(document):
    dispatched = re.findall(r'command == "([a-z-]+)"', (ROOT / "manage.py").read_text())
    known = {*dispatched, *get_commands(), *ALIASES}
    named = {command for code in code_of(document) for command in MANAGE.findall(code)}

    assert sorted(named - known) == []


@case_table("document", PRESENT, ids=name)
def test_documents_name_paths_of_the_api_that_exist(document):
    described = json.loads((ROOT / "aiplatform/docs/api/openapi.json").read_text())["paths"]
    shapes = {re.sub(r"\{[^}]*\}", "{}", path) for path in described}
    named = {path for code in code_of(document) for path in API_PATH.findall(code)}
    filled = {path: re.sub(r"(?<=/)(\{[^}]*\}|[A-Z0-9]+)(?=/|$)", "{}", path) for path in named}

    assert sorted(path for path, shape in filled.items() if not any(s.startswith(shape) for s in shapes)) == []


@case_table("document", [document for document in PRESENT if document in REPOSITORY], ids=name)
def test_documents_link_to_headings_that_exist(document):
    links = re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", document.read_text())
    ours = [(target, anchor) for target, anchor in links if "://" not in target]

    assert [f"{t}#{a}" for t, a in ours if a not in anchors(document.parent / t if t else document)] == []


#: Entries and tabs of the side bar.
NAVIGATION = {
    "Home", "Datasets", "Files", "Annotation", "Training", "Hyperparameter search", "Experiments", "TensorBoard",
    "Reports", "Workspaces", "Custom jobs", "Ports", "Images", "Templates", "Models", "Endpoints", "Batch predictions",
    "Video analytics", "Devices", "Edge groups", "Export targets", "Pipelines", "Jobs", "Nodes", "Usage",
    "Virtual clusters", "Users", "Audit log", "Alerts", "Account", "API tokens", "SSH keys", "Notifications",
}  # fmt: skip
LABEL = re.compile(r"(?<!\*)\*\*([^*\n]*[^*\n.?])\*\*")


@case_table("document", sorted((ROOT / SITE / "en").glob("[tho]*/*.md")), ids=name)
def test_help_site_quotes_labels_of_the_interface(document):
    catalogs = (ROOT / "aiplatform/locale/zh_Hans/LC_MESSAGES").glob("*.po")
    texts = NAVIGATION.union(*(re.findall(r'^msgid "(.+)"$', text(catalog), re.MULTILINE) for catalog in catalogs))
    quoted = {part for label in LABEL.findall(document.read_text()) for part in label.split(" → ")}

    assert sorted(quoted - texts) == []


def test_documents_name_variables_that_the_code_reads():
    modules = [ROOT / "manage.py", *(path for folder in sorted(TOP) for path in (ROOT / folder).rglob("*.py"))]
    in_code = set(env.documented).union(*(VARIABLE.findall(text(path)) for path in modules))

    unknown = {
        f"{name(document)}: {variable}"
        for document in PRESENT
        for variable in VARIABLE.findall(document.read_text())
        if variable not in in_code and not any(known.startswith(f"{variable}_") for known in in_code)
    }
    assert sorted(unknown) == []
