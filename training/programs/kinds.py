"""Base of the job kinds that run a user's program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import wording
from datasets.models import DatasetVersion
from training.programs import program, run_inputs
from training.programs.start import CannotRun
from workers.core.kinds import Fact, JobKind, Way
from workers.core.models import Attempt, Job
from workers.images.services import uses
from workers.jobs import resource_request


class ProgramKind(JobKind):
    """What the kinds of programs check and show alike.

    Attributes:
        model: its rows, a `ProgramRow`.
        form_page: name of the URL of its form.
        about_clone: what *Clone* does.
        owner_refusal: code of the message for an owner who starts no jobs any more.
        sealed_columns: the columns that are sealed.
    """

    model: ClassVar[Any]
    form_page: ClassVar[str]
    about_clone: ClassVar[Any]
    owner_refusal: ClassVar[str]
    sealed_columns: ClassVar[tuple[str, ...]] = ("secrets",)
    step = False
    exec_server = True
    root_inside = True

    def row(self, job: Job) -> Any:
        """The row of a job; None where it is deleted, or the job is the platform's own."""
        return self.model.objects.filter(pk=job.pk).select_related("code", "job__owner", "job__cluster").first()

    def sealed(self, job: Job) -> Mapping[str, str]:
        return self.model.objects.filter(pk=job.pk).values(*self.sealed_columns).first() or {}

    def require_allowed(self, row: Any, attempt: Attempt) -> list[DatasetVersion]:
        """Check again what may have changed while the job waited; return the versions it reads.

        Raises:
            CannotRun: data, owner or membership are gone since the submission.
        """
        owner, is_first = row.job.owner, attempt.number == 1
        if not owner.is_active or not owner.can(self.submit_action):
            raise CannotRun(wording.message(self.owner_refusal))
        if is_first:  # what once ran keeps its data, even when a public dataset was made private
            resource_request.cluster_for(owner, row.job.cluster)
        return _versions(row, owner, check=is_first)

    def check_restore(self, job: Job) -> None:
        if (row := self.row(job)) is not None:
            _versions(row, job.owner, check=True)
            uses.check_restore(job)
            resource_request.cluster_for(job.owner, job.cluster)

    def again(self, job: Job, user: User) -> list[Way]:
        if not user.can(self.submit_action) or not self.model.objects.filter(pk=job.pk).exists():
            return []
        url = f"{reverse(self.form_page)}?clone={job.pk}"
        return [Way("clone", _("Clone"), "clone", self.about_clone, url=url)]

    def facts(self, job: Job) -> list[Fact]:
        row = self.row(job)
        if row is None:
            return []
        facts = self.program_facts(row)
        if row.code:
            facts.append(Fact(_("Code"), row.code.origin))
        if names := [used.name for used in row.inputs.all()]:
            facts.append(Fact(_("Datasets"), ", ".join(names)))
        return facts + program.variable_facts(row)

    def program_facts(self, row: Any) -> list[Fact]:
        """What is specific to the kind; comes first."""
        return []


def _versions(row: Any, owner: User, *, check: bool) -> list[DatasetVersion]:
    return run_inputs.still_there(row.inputs.select_related("version__dataset"), owner, check=check)
