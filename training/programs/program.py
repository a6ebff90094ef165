"""A person's own program, whatever kind of job it is: a script, how it is started, what it is told."""

from __future__ import annotations

from typing import Any, Protocol

from django.utils.translation import gettext as _

from aiplatform.lib import secret_names
from training.programs import script
from workers.core.kinds import Fact
from workers.core.models import Job
from workers.core.runs import RunDir

SCRIPT, WORKER_SCRIPT = "command.sh", "worker.sh"  # in the run directory, which a job only reads
#: Ends at the first line that fails, as people expect of a list of steps. Images need not have bash.
SHELL = ["/bin/sh", "-c", 'if command -v bash >/dev/null; then exec bash -e "$0"; else exec sh -e "$0"; fi']

#: Starts a command for the switches -hint and -CloseDelay, as aip_start.py does a Python file: an image may
#: have no Python. A request to end passes over shells, so the command itself hears it.
WITH_HINT_AND_DELAY = [
    "/bin/sh", "-c",
    'if [ -n "$AIP_HINT" ]; then if [ "${RANK:-0}" = 0 ]; then printf "%s\\n" "$AIP_HINT"; fi; '
    'sleep "${AIP_HINT_S:-5}" || exit; fi; "$@"; code=$?; sleep "${AIP_CLOSE_DELAY_S:-0}"; exit $code',
    "sh",
]  # fmt: skip


class Program(Protocol):
    """A row that says what a person runs.

    Attributes:
        script, worker_script: what the first and the other machines run; "" of the latter: the same.
        launcher: how each machine starts it, see `programs.layout`.
        processes: on each machine; 0 is one for each card.
        variables, secrets, secret_names: its environment, see `training.programs.variables`.
    """

    script: str
    worker_script: str
    launcher: str
    processes: int
    variables: Any
    secrets: str
    secret_names: Any

    @property
    def job(self) -> Job: ...


def written(run: RunDir, name: str, text: str) -> list[str]:
    """Write a script into the run directory; returns what starts it."""
    path = run.path / name
    path.write_text(text + "\n", encoding="utf-8")
    path.chmod(0o755)
    return [str(path)] if text.startswith("#!") else [*SHELL, str(path)]


def named_secrets(program: Program) -> list[str]:
    """Values of variables and in scripts whose names say that they are secret."""
    named = [*secret_names.find_secrets(program.variables), *script.secrets_in(program.script)]
    return named + script.secrets_in(program.worker_script)


def spec(program: Program, *, nodes: int) -> dict[str, Any]:
    """Return the part of a job's spec that describes its program; secrets by name only."""
    result: dict[str, Any] = {
        "command": script.shown(program.script),
        "variables": secret_names.mask_params(program.variables),
        "secrets": program.secret_names,
    }
    if nodes > 1 or program.launcher not in ("", "once"):
        result |= {"launcher": program.launcher, "processes": program.processes}
        result["worker_command"] = script.shown(program.worker_script)
    return result


def script_facts(program: Program) -> list[Fact]:
    """Return the scripts that are run, for the job's page."""
    facts = [Fact(_("Command"), script.shown(program.script), code=True)] if program.script else []
    if program.worker_script:
        facts.append(Fact(_("Command on the other nodes"), script.shown(program.worker_script), code=True))
    return facts


def variable_facts(program: Program) -> list[Fact]:
    """Return the variables with secrets masked."""
    assignments = [f"{name}={value}" for name, value in secret_names.mask_params(program.variables).items()]
    lines = assignments + [f"{name}=••••••" for name in program.secret_names]
    return [Fact(_("Environment variables"), "\n".join(lines), code=True)] if lines else []
