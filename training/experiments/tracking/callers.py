"""Callers: who reports, and what they reach. A person by an API token, or the program of a job by the job's own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from django.db.models import Q
from django.http import HttpRequest
from django.utils.translation import gettext as _

from accounts.access.permissions import Action
from accounts.models import ApiToken, User
from accounts.services import tokens as api_tokens
from accounts.sign_in import lockout
from aiplatform.lib.errors import NotAllowed
from training.experiments.models import Run
from training.experiments.querysets import RunQuerySet
from training.experiments.tracking import refusals, tokens
from training.experiments.tracking.models import JobToken
from workers.core.models import Job


@dataclass(frozen=True)
class Caller:
    """A person, or a job's program that acts for its owner. `token` is the job's; None of a person."""

    user: User
    token: JobToken | None = None

    @property
    def job(self) -> Job | None:
        """The job whose program this is."""
        return self.token.attempt.job if self.token else None

    @cached_property
    def own_run(self) -> Run | None:
        """The run of that job; an environment has none."""
        return Run.objects.filter(job=self.job).first() if self.job else None

    def runs(self) -> RunQuerySet:
        """Runs to read: of a job's program those of the job's owner."""
        if self.token:
            return Run.objects.filter(owner=self.user)
        return Run.objects.visible_to(self.user)

    def run(self, uid: str) -> Run:
        """Return a run to read.

        Raises:
            Missing: there is none, or it is not for this caller.
        """
        row = self.runs().select_related("job__owner", "owner", "parent", "reported").filter(uid=uid).first()
        if row is None:
            raise refusals.no_run(uid)
        return row

    def run_to_change(self, uid: str) -> Run:
        """A run to report to.

        Raises:
            Missing: there is none, or it is not for this caller.
            NotAllowed: it is for reading.
        """
        run = self.run(uid)
        if self.token:
            if not self.runs().filter(self._of_job(), pk=run.pk).exists():
                raise NotAllowed(_("The token of a job can change only the run of this job and its child runs."))
        elif run.owner_id != self.user.pk and not Run.objects.editable_by(self.user).filter(pk=run.pk).exists():
            raise NotAllowed(_("This run belongs to another user; your access is read-only."))
        return run

    def _of_job(self) -> Q:
        return Q(job=self.job) | Q(reported__job=self.job)


def authenticate(request: HttpRequest, *, reads: bool) -> Caller:
    """Return the caller of a request.

    Args:
        reads: it changes nothing, whatever its method.

    Raises:
        Stranger: no token, or one that is unknown, over or revoked.
        NotAllowed: a person who may not, or a token that may only read.
    """
    scheme, _space, secret = request.headers.get("Authorization", "").partition(" ")
    secret = secret.strip()
    if scheme.lower() != "bearer" or not secret:
        raise refusals.Stranger(_("Set MLFLOW_TRACKING_TOKEN to one of your API tokens; create one in Settings."))
    if secret.startswith(tokens.PREFIX):
        own = tokens.find(secret)
        if own is not None:
            return Caller(own.attempt.job.owner, own)
    token = api_tokens.find(secret)
    if token is None:
        lockout.count_token_guess(request)
        raise refusals.Stranger(_("This token is unknown, expired or revoked, or its job has ended."))
    return _person(token, reads=reads)


def _person(token: ApiToken, *, reads: bool) -> Caller:
    if token.user.must_change_password:
        raise NotAllowed(_("Change your initial password in the browser."))
    if token.scope == ApiToken.Scope.READ and not reads:
        raise NotAllowed(_("This token is read-only."))
    token.user.require(Action.TRAINING_VIEW if reads else Action.TRAINING_SUBMIT)
    return Caller(token.user)
