"""The job kind `command`: a command line or a script as somebody wrote it."""

from __future__ import annotations

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import User
from aiplatform.lib import wording
from aiplatform.lib.errors import Invalid
from training.commands.models import Command
from training.programs import layout, program, run_inputs, script, variables, workdir
from training.programs.kinds import ProgramKind
from workers.core.kinds import Capabilities, Fact, Launch, Way
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir
from workers.images.services import launch as launching

FINISH_GRACE_S = 30.0  # a command may not listen: it hears TERM soon


class CommandKind(ProgramKind):
    """`Command`: anything a shell can run. The platform's own have no such row but `spec.argv`, a list of words."""

    name = "command"
    label = gettext_lazy("Custom job")
    plural = gettext_lazy("Custom jobs")
    icon = "code"
    order = 45
    section = "workspaces"
    list_page, form_page = "commands:list", "commands:new"
    related = ("command",)
    model, owner_refusal = Command, "command.owner_not_allowed"
    about_clone = gettext_lazy("Fills in the form with the same command, code, data and resources.")

    def prepare(self, job: Job, attempt: Attempt, run: RunDir) -> Launch:
        """Copy the code, link the data, write the script; safe to call again.

        Raises:
            CannotRun: data, owner or membership are gone since the submission.
        """
        command = self.row(job)
        if command is None:
            return Launch(argv=_argv_of(job))
        command.job = job
        versions = self.require_allowed(command, attempt)
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

    def capabilities(self, job: Job) -> Capabilities:
        saves = bool(job.spec.get("checkpoints"))
        return Capabilities(pause=True, suspend=saves, finish=True, restore=True)

    def again(self, job: Job, user: User) -> list[Way]:
        ways = super().again(job, user)
        description = _("Saves the job request, to be reused by you and others.")
        url = f"{reverse('templates:new')}?job={job.pk}"
        return [*ways, Way("template", _("Save as template"), "save", description, url=url)] if ways else []

    def program_facts(self, row: Command) -> list[Fact]:
        facts = program.script_facts(row)
        if layout.is_needed(row):
            facts.append(Fact(_("Launcher"), layout.started_words(row)))
        return facts


def _argv_of(job: Job) -> list[str]:
    argv = job.spec.get("argv")
    if not isinstance(argv, list) or not argv or not all(isinstance(word, str) for word in argv):
        raise Invalid(wording.message("training.no_command"), field="argv")
    return argv
