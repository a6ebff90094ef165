"""The job kind `command`: a command line or a script as somebody wrote it."""

from __future__ import annotations

from collections.abc import Mapping

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib import wording
from aiplatform.lib.errors import Invalid
from datasets.models import DatasetVersion
from training.commands.models import Command
from training.programs import layout, program, run_inputs, script, variables, workdir
from training.programs.start import CannotRun
from workers.core.kinds import Capabilities, Fact, JobKind, Launch, Way
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir
from workers.images.services import launch as launching
from workers.images.services import uses
from workers.jobs import resource_request

FINISH_GRACE_S = 30.0  # a command may not listen: it hears TERM soon


class CommandKind(JobKind):
    """`Command`: anything a shell can run. The platform's own have no such row but `spec.argv`, a list of words."""

    name = "command"
    label = gettext_lazy("Command")
    plural = gettext_lazy("Custom jobs")
    icon = "code"
    order = 45
    list_page = "commands:list"
    step = False
    exec_server = True
    root_inside = True
    related = ("command",)

    def prepare(self, job: Job, attempt: Attempt, run: RunDir) -> Launch:
        """Copy the code, link the data, write the script; safe to call again.

        Raises:
            CannotRun: data, owner or membership are gone since the submission.
        """
        command = Command.objects.filter(pk=job.pk).select_related("code").first()
        if command is None:
            return Launch(argv=_argv_of(job))
        command.job = job
        versions = _still_allowed(command, attempt)
        workdir.populate(run, command.code, output_path=command.output_path)
        argv = program.written(run, program.SCRIPT, command.script)
        machines: dict[str, str] = {}
        if layout.is_needed(command):
            text = command.worker_script
            worker = program.written(run, program.WORKER_SCRIPT, text) if text else []
            argv, machines = layout.write(command, attempt, run, argv, worker)
        secrets = variables.opened(job, run).get("secrets", {})
        launch = Launch(
            argv=argv,
            env=machines | command.variables | secrets | run_inputs.linked(run, versions),
            read_only=[folder for version in versions for folder in version.folders],
            secrets=[*secrets.values(), *program.named_secrets(command)],
            finish_grace_s=FINISH_GRACE_S,
            command=script.shown(command.script),
        )
        return launching.with_image(launch, job)

    def sealed(self, job: Job) -> Mapping[str, str]:
        return {"secrets": Command.objects.filter(pk=job.pk).values_list("secrets", flat=True).first() or ""}

    def capabilities(self, job: Job) -> Capabilities:
        saves = bool(job.spec.get("checkpoints"))
        return Capabilities(pause=True, suspend=saves, finish=True, restore=True)

    def check_restore(self, job: Job) -> None:
        command = Command.objects.filter(pk=job.pk).first()
        if command is not None:
            _versions(command, job.owner, check=True)
            resource_request.cluster_for(job.owner, job.cluster)
            uses.check_restore(job)

    def again(self, job: Job, user: User) -> list[Way]:
        if not user.can(Action.JOBS_SUBMIT) or not Command.objects.filter(pk=job.pk).exists():
            return []
        clone_help = _("Fills in the form with the same command, code, data and resources.")
        template_help = _("Saves the job request, to be reused by you and others.")
        return [
            Way("clone", _("Clone"), "clone", clone_help, url=f"{reverse('commands:new')}?clone={job.pk}"),
            Way(
                "template", _("Save as template"), "save", template_help, url=f"{reverse('templates:new')}?job={job.pk}"
            ),
        ]

    def facts(self, job: Job) -> list[Fact]:
        command = Command.objects.filter(pk=job.pk).select_related("code", "job").first()
        if command is None:
            return []
        facts = program.script_facts(command)
        if layout.is_needed(command):
            facts.append(Fact(_("Launcher"), layout.started_words(command)))
        if command.code:
            facts.append(Fact(_("Code"), command.code.origin))
        names = [row.name for row in command.inputs.all()]
        if names:
            facts.append(Fact(_("Datasets"), ", ".join(names)))
        return facts + program.variable_facts(command)


def _argv_of(job: Job) -> list[str]:
    argv = job.spec.get("argv")
    if not isinstance(argv, list) or not argv or not all(isinstance(word, str) for word in argv):
        raise Invalid(wording.message("training.no_command"), field="argv")
    return argv


def _still_allowed(command: Command, attempt: Attempt) -> list[DatasetVersion]:
    """Check again what may have changed while the command waited; returns the versions it reads."""
    owner = command.job.owner
    if not owner.is_active or not owner.can(Action.JOBS_SUBMIT):
        raise CannotRun(wording.message("command.owner_not_allowed"))
    first = attempt.number == 1  # what once ran keeps its data, even when a public dataset was made private
    if first:
        resource_request.cluster_for(owner, command.job.cluster)
    return _versions(command, owner, check=first)


def _versions(command: Command, owner: User, *, check: bool) -> list[DatasetVersion]:
    return run_inputs.still_there(command.inputs.select_related("version__dataset"), owner, check=check)
