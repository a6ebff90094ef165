"""Pages of the help site that are made from the code: commands, errors, job states, settings, glossary."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any, Final

from django.urls import get_resolver

from aiplatform import env
from aiplatform.lib.errors import DomainError
from aiplatform.pages.help.commands import command_reference
from workers.core.states import FINAL, TRANSITIONS, JobState, Reason

DOCS: Final = env.BASE_DIR / "aiplatform" / "docs"
SITE: Final = DOCS / "site"
#: Beginnings of the names of variables → heading of their table; the first match applies.
SETTING_GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "Data": ("DATA_ROOT", "RUN_DIR", "SCRATCH", "SERVER_PATHS", "MAX_UPLOAD", "STORAGE", "HOME", "CACHE"),
    "Web server": (
        "HOST",
        "PORT",
        "WEB_WORKERS",
        "READY",
        "BASE_URL",
        "ALLOWED_HOSTS",
        "SECRET_KEY",
        "DEBUG",
        "METRICS",
    ),
    "Database and broker": ("DATABASE", "REDIS"),
    "Nodes": ("NODE", "SERVER", "CPU", "FAKE", "JOB_PORTS", "MEETING_PORTS", "EXEC", "SSH"),
    "Isolation of jobs": ("SANDBOX", "CONTAINER", "EGRESS"),
    "Sign-in": ("REGISTRATION", "OIDC", "LDAP"),
    "Mail, webhooks and other outgoing requests": ("SMTP", "MAIL", "WEBHOOK", "STREAM", "PUSH"),
    "Language": ("LANGUAGE", "TIME_ZONE"),
}
#: Read by manage.py before anything is installed.
BOOTSTRAP: Final = {
    "AIP_BOOTSTRAP": ("1", "0: install nothing and use the packages of this Python."),
    "AIP_TORCH_INDEX_URL": ("PyPI", "Package index for PyTorch, for example that of the CPU builds."),
}


def generated_pages(language: str) -> dict[str, str]:
    """Return the generated pages of one language: path in the site → Markdown."""
    if language != "en":
        return {"glossary.md": chinese_glossary()}
    return {
        "glossary.md": glossary(),
        "reference/cli.md": command_reference(),
        "reference/errors.md": errors(),
        "reference/job-states.md": job_states(),
        "reference/settings.md": settings(),
    }


@cache
def _meanings() -> dict[str, Any]:
    return tomllib.loads((SITE / "meanings.toml").read_text())


def error_classes() -> dict[str, type[DomainError]]:
    """Return the first class of each error code, of all apps that have routes and of the sign-in backends."""
    _load(get_resolver().url_patterns)
    import_module("accounts.sign_in.backends")  # sign-in by a directory, where one is configured
    classes: dict[str, type[DomainError]] = {}
    for error in _subclasses(DomainError):
        classes.setdefault(error.code, error)
    return classes


def _load(patterns: list[Any]) -> None:
    """Import the modules of all routes; `url_patterns` of a nested list is read when it is first needed."""
    for pattern in patterns:
        _load(getattr(pattern, "url_patterns", []))


def _subclasses(base: type[DomainError]) -> Iterator[type[DomainError]]:
    for child in base.__subclasses__():
        yield child
        yield from _subclasses(child)


def errors() -> str:
    """Return the page of error codes: meaning and remedy from meanings.toml, status and field from the class."""
    classes = error_classes()
    general = _meanings()["general_errors"]
    parts = [
        "# Error codes\n",
        "Each refusal has a stable code: on error pages, in the member `code` of API responses\n",
        "([RFC 9457](https://www.rfc-editor.org/rfc/rfc9457)), and in messages of `aip`. Scripts match on the code,\n",
        "never on the message. `field` names the field of the request that the error is about.\n",
        "\n## Any request\n",
    ]
    parts += [_entry(code, *general[code]) for code in sorted(general)]
    parts.append("\n## Rules of the platform\n")
    for code, error in sorted(classes.items()):
        meaning, remedy = _meanings()["errors"].get(code, (f"{code}.", ""))
        field = f", field `{error.field}`" if error.field else ""
        parts.append(_entry(code, f"Status {error.status}{field}. {meaning}", remedy))
    return "".join(parts)


def _entry(code: str, meaning: str, remedy: str) -> str:
    return f"\n### {code}\n{meaning} {remedy}\n".replace(" \n", "\n")


def job_states() -> str:
    """Return the page of job states, the events between them and the reasons for which an attempt ends."""
    meanings = _meanings()["states"]
    rows = [
        f"| {state.label} | `{state}` | {meanings[state.value]} | {'yes' if state in FINAL else ''} |\n"
        for state in JobState
    ]
    moves = [f"| {state.label} | `{event}` | {target.label} |\n" for (state, event), target in TRANSITIONS.items()]
    reasons = [f"| `{reason}` | {reason.label}. |\n" for reason in Reason if reason]
    return "".join(
        (
            "# Job states\n",
            "Trainings, evaluations, custom jobs, workspaces and endpoints are jobs and have the same states. Pages,\n",
            "API and `aip jobs` show the same state. `state` in the API has the code.\n\n",
            "## States\n\n| state | code | meaning | final |\n|---|---|---|---|\n",
            *rows,
            "\n## Reasons\nWhy an attempt ended or a job waits again (`reason` in the API):\n\n",
            "| code | meaning |\n|---|---|\n",
            *reasons,
            "\n## Transitions\nAll others are refused with `illegal_move`.\n\n",
            "| from | event | to |\n|---|---|---|\n",
            *moves,
        )
    )


def settings() -> str:
    """Return the page of all variables that the platform reads, with default and meaning."""
    variables = {**env.documented, **BOOTSTRAP}
    groups: dict[str, list[str]] = {title: [] for title in (*SETTING_GROUPS, "Other")}
    for name in variables:
        suffix = name.removeprefix("AIP_")
        matches = (title for title, starts in SETTING_GROUPS.items() if suffix.startswith(starts))
        groups[next(matches, "Other")].append(name)
    parts = [
        "# Settings\n",
        "Settings are environment variables. All have defaults that work on one node.\n",
        "`python3 manage.py doctor --settings` prints the values in use, `python3 manage.py deploy` writes them to\n",
        "files for systemd.\n",
    ]
    for title, names in groups.items():
        if names:
            parts.append(f"\n## {title}\n\n| variable | default | meaning |\n|---|---|---|\n")
            for name in names:
                default = "host name" if name == "AIP_NODE" else _default(variables[name][0])
                parts.append(f"| `{name}` | {default} | {_cell(variables[name][1])} |\n")
    return "".join(parts)


def _default(text: str) -> str:
    """Return a default as users write it; it names neither folders nor the host of this installation."""
    shown = text.replace(str(env.BASE_DIR / "var"), "./var").replace(str(env.DATA_ROOT), "AIP_DATA_ROOT")
    shown = {"True": "1", "False": "0", "None": "", "set()": "", "inf": ""}.get(shown, shown)
    shown = ", ".join(part.strip(" '") for part in shown.strip("[]").split(",")).removesuffix(".0")
    return f"`{shown}`" if shown else ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def _glossary_tables() -> str:
    """Return the tables of glossary.md that users need, without the terms of the code."""
    text = (DOCS / "glossary.md").read_text()
    tables = text.partition("\n## ")[2].partition("\nHow Chinese texts are written")[0]
    return f"## {tables.strip()}\n"


def glossary() -> str:
    """Return the glossary in English."""
    introduction = "The terms of the pages, the API and these documents, with their Chinese translation."
    return f"# Glossary\n{introduction}\n\n{_glossary_tables()}"


def chinese_glossary() -> str:
    """Return the glossary with the Chinese term first."""
    headings = {"Resources and jobs": "资源和任务", "Data": "数据", "Models": "模型", "Users": "用户"}
    lines = ["# 术语表", "界面、API 和文档中的术语。含义为英文。", ""]
    for line in _glossary_tables().splitlines():
        if line.startswith("## "):
            lines.append(f"## {headings.get(line[3:], line[3:])}")
        elif line.startswith("| term"):
            lines.append("| 中文 | English | meaning |")
        elif line.startswith("|") and not line.startswith("|-"):
            term, meaning, chinese = (cell.strip() for cell in line.strip("|").split("|"))
            lines.append(f"| {chinese} | {term} | {meaning} |")
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"
