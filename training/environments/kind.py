"""The job kind `environment`: JupyterLab to work in, with the person's home folder."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from django.utils.translation import gettext_lazy

from aiplatform import env
from datasets.files import homes, usage
from training.environments import engine, idle_release, jupyter, services, several, vscode
from training.environments.models import Environment
from training.programs import run_inputs, variables, workdir
from training.programs.kinds import ProgramKind
from workers.core.count_classes import ENVIRONMENT
from workers.core.kinds import Capabilities, Launch
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir
from workers.images.store import packages

START = Path(__file__).with_name("start.py")
SCRIPT = "start.py"  # in the run directory, which a job only reads
FINISH_GRACE_S = 15.0


class EnvironmentKind(ProgramKind):
    """`Environment`: JupyterLab, the packages that people install in it, and their home."""

    name = services.KIND
    label = gettext_lazy("Workspace")
    plural = gettext_lazy("Workspaces")
    icon = "environments"
    order = 42
    section = "workspaces"
    list_page, form_page = "environments:list", "environments:new"
    counts_as = ENVIRONMENT
    idle_guard = False  # training.environments.lifecycle judges it: cards of somebody who thinks are not unused
    approvable = True
    can = Capabilities(pause=True, suspend=False, finish=False, restore=True)
    about_restore = gettext_lazy("Starts it again, with its files and installed packages.")
    related = ("environment",)
    model, owner_refusal, sealed_columns = Environment, "environment.owner_not_allowed", ("secrets", "token")
    about_clone = gettext_lazy(
        "Fills in the form with the same settings; the new one starts without the packages installed here."
    )

    def prepare(self, job: Job, attempt: Attempt, run: RunDir) -> Launch:
        """Copy the code, link the data, make the home; safe to call again.

        Raises:
            CannotRun: data, owner or membership are gone since the submission, or JupyterLab cannot be reached here.
            NotYet: its image is being built.
        """
        environment = Environment.objects.select_related("code", "job__owner", "job__cluster").get(pk=job.pk)
        versions = self.require_allowed(environment, attempt)
        home, contained = homes.home_of(job.owner), engine.is_contained(job)
        workdir.populate(run, environment.code)
        (run.path / SCRIPT).write_text(START.read_text(encoding="utf-8"), encoding="utf-8")
        opened = variables.opened(job, run)
        secrets, token = opened.get("secrets", {}), opened["token"]["token"]
        own_network = env.ENVIRONMENT_NETWORK == "own" and job.nodes == 1
        launch = Launch(
            argv=[],
            env=packages.variables(proxies=not own_network, contained=contained)
            | environment.variables
            | secrets
            | run_inputs.linked(run, versions)
            | jupyter.variables(home, token),
            read_only=[
                *(folder for version in versions for folder in version.folders),
                *packages.files(contained=contained),
                *([] if contained else vscode.folders()),  # its programs are the image's own
            ],
            read_write=[home],
            secrets=services.hidden_in_log(environment, [token, *secrets.values()]),
            own_network=own_network,
            finish_grace_s=FINISH_GRACE_S,
        )
        launch = engine.launched(launch, job)
        python, program = engine.programs(job)
        args = [str(run.path / SCRIPT), str(home), environment.folder, str(run.code) if environment.code else ""]
        options = jupyter.options(job, home=home, folder=environment.folder)
        argv = [python, "-I", *args, program, *options]
        if contained:
            launch = replace(launch, command=shlex.join([program, *options]))
        launch = replace(launch, argv=engine.in_container(argv) if contained else argv)
        return several.launched(launch, attempt, run, home)

    def further(self, job: Job, launch: Launch) -> Launch:
        return engine.further(launch, job)

    def idle(self, jobs: Collection[int]) -> set[int]:
        return idle_release.due(jobs)

    def capabilities(self, job: Job) -> Capabilities:
        environment = getattr(job, "environment", None) if job.is_final else None  # None: its own row is gone
        gone = environment is not None and environment.deleted_at is not None
        return Capabilities(pause=False, finish=False, restore=False) if gone else self.can

    def check_restore(self, job: Job) -> None:
        super().check_restore(job)
        usage.require_within_quota(job.owner)
