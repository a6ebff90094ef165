"""Try another version on a part of a service's requests: start, change the part, promote, roll back, halt.

The server of the tried version is a job of its own beside the one that answers. Promotion moves the service's address
to a server that runs already (where there are several, once as many of the tried version run), and going back stops
one: neither loses a request.
"""

from __future__ import annotations

from django.db import IntegrityError, transaction
from django.utils.timezone import now
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.services import audit
from aiplatform.lib import wording
from aiplatform.lib.errors import DomainError, Invalid, Refusals
from inference.registry import sweeps
from inference.registry.models import ModelVersion
from inference.serving import addresses, endpoints, host_assignment, trial_closing, withdrawal
from inference.serving.models import Service, ServiceTrial
from inference.serving.scaling import replicas
from inference.serving.traffic import proportions, statistics
from workers.core.models import Job
from workers.core.states import JobState

#: Requests that a version must have answered before its failures are held against those of the other one.
MIN_REQUESTS = 200
#: Share of its requests above which a version is halted by itself, once that is sure at 95 %.
MAX_FAILED = 0.5


class TrialOpen(DomainError, code="trial_open", field="model_version"):
    """Something else is being tried, or the service is on its way to another model."""


class NoTrial(DomainError, code="no_trial"):
    """Nothing is being tried."""


class NotReady(DomainError, code="trial_not_ready"):
    """What is tried does not answer."""


def start(*, service: Service, version: ModelVersion, mode: str, percent: int, by: User) -> ServiceTrial:
    """Start a server with another version, which gets its share of the requests when it is ready.

    Args:
        mode: one of `ServiceTrial.Mode`.
        percent: of the requests, 1..99; a shadow gets copies of 1..100 of them.

    Raises:
        Invalid: a value is out of range, the service is stopped, or the version does another task or answers already.
        TrialOpen: a trial or a change of the model is under way.
        CannotServe, Archived: the version cannot answer.
    """
    refusals = Refusals()
    with refusals:
        check_part(mode, percent)
    with refusals:
        endpoints.check(user=service.owner, model_version=version)
    with refusals:
        _check_version(service, version)
    refusals.end()
    try:
        with transaction.atomic():
            locked = Service.objects.select_for_update(of=("self",)).select_related("job", "owner").get(pk=service.pk)
            if not locked.is_up:
                raise Invalid(_("%(name)s is stopped. Start it first.") % {"name": locked.name}, field="model_version")
            if locked.next_job_id is not None:
                raise TrialOpen(
                    _("%(name)s is changing its model. Wait until it is done, or cancel the change.")
                    % {"name": locked.name}
                )
            trial = ServiceTrial(
                service=locked, version=version, model_name=str(version)[:130], beside=locked.model_name[:130],
                mode=mode, percent=percent, started_by=by,
            )  # fmt: skip
            trial.save()
            trial.job = endpoints.submit(locked, version)
            trial.save(update_fields=["job"])
    except IntegrityError:
        message = _("%(name)s already has a rollout. End it first.")
        raise TrialOpen(message % {"name": service.name}) from None
    audit.record(by, "service_trial_started", service, version=str(version), mode=mode, percent=percent)
    return trial


def check_part(mode: str, percent: int) -> None:
    """Check the mode of a trial and its share of the requests.

    Raises:
        Invalid.
    """
    if mode not in ServiceTrial.Mode.values:
        modes = ", ".join(ServiceTrial.Mode.values)
        raise Invalid(_("mode must be one of %(known)s.") % {"known": modes}, field="mode")
    maximum = 100 if mode == ServiceTrial.Mode.SHADOW else 99
    if not 1 <= percent <= maximum:
        raise Invalid(_("The share must be 1 to %(most)s percent.") % {"most": maximum}, field="percent")


def _check_version(service: Service, version: ModelVersion) -> None:
    current = service.model_version
    if current == version:
        message = _("%(name)s already serves %(model)s.") % {"name": service.name, "model": version}
        raise Invalid(message, field="model_version")
    if current is not None and current.task != version.task:
        message = _("%(model)s has a different task, so clients could not use its predictions.")
        raise Invalid(message % {"model": version}, field="model_version")


def current(service: Service) -> ServiceTrial | None:
    """What the service tries now."""
    rows = ServiceTrial.objects.filter(service=service, outcome="").select_related("job", "version__model")
    trial: ServiceTrial | None = rows.first()
    if trial is not None:
        trial.service = service
    return trial


def _lock_open_trial(service: Service) -> ServiceTrial:
    """Return the open trial, locked; within a transaction."""
    trial = ServiceTrial.objects.select_for_update(of=("self",)).filter(service=service, outcome="").first()
    if trial is None:
        raise NoTrial(_("%(name)s has no rollout.") % {"name": service.name})
    open_trial: ServiceTrial = trial
    return open_trial


def change_part(*, service: Service, percent: int, by: User) -> ServiceTrial:
    """Give it more or fewer of the requests; counts within a second.

    Raises:
        NoTrial, Invalid.
    """
    with transaction.atomic():
        trial = _lock_open_trial(service)
        check_part(trial.mode, percent)
        trial.percent = percent
        trial.save(update_fields=["percent"])
    audit.record(by, "service_trial_changed", service, percent=percent)
    return trial


def promote(*, service: Service, by: User) -> Service:
    """Serve all requests with the version on trial; its server is running already.

    A service with several servers changes its model then: the address leads to the tried one once as many answer with
    it, see `swapping`.

    Raises:
        NoTrial: nothing is tried.
        NotReady: its server does not answer.
        DomainError: the further servers cannot be had, see `submission.submit`.
    """
    with transaction.atomic():
        locked = Service.objects.select_for_update(of=("self",)).get(pk=service.pk)  # first, as stopping does
        trial = _lock_open_trial(service)
        job = trial.job
        if job is None or trial.version is None or not may_be_used(trial) or not trial.answers:
            message = _("%(model)s does not respond yet, so nothing was changed.")
            raise NotReady(message % {"model": trial.model_name})
        replicas.start_matching(locked, trial.version)
        if replicas.has_further(locked, trial.version):
            locked.next_job, locked.next_version = job, trial.version
            detached = None
        elif addresses.is_shared(locked.job) and host_assignment.fits(
            trial.version
        ):  # it is loaded there, and that server ends
            locked.next_job, locked.next_version = locked.job, trial.version
            detached, locked.old_job, locked.swapped_at = locked.old_job, job, now()
        else:
            detached, locked.old_job, locked.swapped_at = locked.old_job, locked.job, now()
            locked.job, locked.model_version, locked.ready_attempt = job, trial.version, trial.ready_attempt
        locked.save()
        trial_closing.close(trial, ServiceTrial.Outcome.PROMOTED)
        if addresses.is_shared(locked.job):
            host_assignment.refill(locked.job)
        endpoints.end(detached, None)
    audit.record(by, "service_trial_promoted", service, version=trial.model_name)
    return locked


def roll_back(*, service: Service, by: User) -> Service:
    """Give all requests to the version that the service has, and stop the tried one.

    Raises:
        NoTrial: nothing is tried.
    """
    with transaction.atomic():
        trial = _lock_open_trial(service)
        trial_closing.close(trial, ServiceTrial.Outcome.ROLLED_BACK)
        endpoints.end(trial.job, by)
    audit.record(by, "service_trial_rolled_back", service, version=trial.model_name)
    return service


def _halt(trial: ServiceTrial, code: str, **facts: str | int) -> None:
    with transaction.atomic():
        if not trial_closing.close(trial, ServiceTrial.Outcome.HALTED, wording.message(f"trial.{code}", **facts)):
            return
        endpoints.end(trial.job, None)
        audit.record(None, "service_trial_halted", trial.service, version=trial.model_name, why=code)


def advance(trial: ServiceTrial) -> None:
    """Route requests to a trial when it is ready; halt it if it ended or fails more than the current version."""
    job: Job | None = trial.job
    if not may_be_used(trial):
        _halt(trial, "withdrawn")
    elif not trial.service.is_up:
        _halt(trial, "service_ended")
    elif job is None or job.is_final:
        _halt(trial, "server_ended")
    elif job.state == JobState.RUNNING and not trial.answers:
        where = addresses.place(job, trial.service_id, trial.version_id)
        if where is not None and endpoints.is_ready(where, endpoints.key_for(job.pk, job.attempt_number)):
            ServiceTrial.objects.filter(pk=trial.pk, job=job).update(ready_attempt=job.attempt_number)
            trial.ready_attempt = job.attempt_number
    elif trial.answers:
        tried, beside = statistics.of_trial(trial)
        if tried.failed_low > MAX_FAILED:
            _halt(trial, "fails", failed=tried.failed, requests=tried.requests)
        elif tried.requests >= MIN_REQUESTS and proportions.is_more(
            tried.failed, tried.requests, beside.failed, beside.requests
        ):
            _halt(
                trial, "fails_more", failed=tried.failed, requests=tried.requests,
                beside_failed=beside.failed, beside_requests=beside.requests,
            )  # fmt: skip


def may_be_used(trial: ServiceTrial) -> bool:
    """Whether the version is there, and still shared with the service's owner."""
    if trial.version_id is None:
        return False
    try:
        withdrawal.usable_version(trial.service, trial.version_id)
    except withdrawal.ModelWithdrawn:
        return False
    return True


def sweep() -> None:
    """Go on with all that is being tried."""
    rows = ServiceTrial.objects.filter(outcome="").select_related(
        "job", "service__owner", "service__job", "version__model"
    )
    for trial in rows:
        with sweeps.kept_apart(f"trial={trial.pk} could not go on"):
            advance(trial)
