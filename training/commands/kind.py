"""The job kind `command`: a command as it was typed."""

from __future__ import annotations

from django.utils.translation import gettext_lazy

from aiplatform.lib import wording
from aiplatform.lib.errors import Invalid
from workers.kinds import Capabilities, JobKind, Launch
from workers.models import Attempt, Job
from workers.runs import RunDir


class CommandKind(JobKind):
    """`spec`: `argv`, a list of words, no shell; `checkpoints` true: it obeys the control file."""

    name = "command"
    label = gettext_lazy("Command")
    icon = "code"
    offered = False

    def prepare(self, job: Job, attempt: Attempt, run: RunDir) -> Launch:
        argv = job.spec.get("argv")
        if not isinstance(argv, list) or not argv or not all(isinstance(word, str) for word in argv):
            raise Invalid(wording.message("training.no_command"), field="argv")
        return Launch(argv=argv)

    def capabilities(self, job: Job) -> Capabilities:
        saves = bool(job.spec.get("checkpoints"))
        return Capabilities(pause=True, suspend=saves, finish=True, restore=True)
