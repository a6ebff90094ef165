"""The step that gives a service another model: at once, or after it was tried on a part of the requests."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils.translation import gettext_lazy

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib import wording
from aiplatform.lib.errors import DomainError, Refusals
from aiplatform.lib.wording import Message
from inference.pipelines.kinds import Begun, Call, Done, Param, Port, StepFailed
from inference.pipelines.models import StepRun, reference
from inference.pipelines.steps import long_running, references, rows
from inference.pipelines.steps.training import figures
from inference.registry.models import ModelVersion
from inference.serving import endpoints, model_swaps
from inference.serving.models import Service, ServiceTrial
from inference.serving.traffic import statistics as counted
from inference.serving.traffic import trials
from inference.serving.traffic.statistics import Figures
from workers.core.clock import now

AT_ONCE = "at_once"
ARRIVE, TRY = "arrive", "try"  # phases: the address leads over, or a trial is watched
MAX_WATCH = timedelta(days=7)  # for requests to come, after which nothing was shown
RULE = ("minutes", "requests", "most_failed", "least_agreement")


class ServeStep(long_running.LastingStep):
    """A service that answers with a model: made, or changed without a lost request."""

    name = "serve"
    label = gettext_lazy("Deploy")
    description = gettext_lazy(
        "Deploys a model to an endpoint: immediately, or by a rollout to a share of the requests first. "
        "Completes when the model serves all requests; fails if the rollout fails and the endpoint keeps its "
        "previous model."
    )
    group = "ship"
    icon = "inference"
    needs = Action.SERVICES_MANAGE
    inputs = (Port("model", gettext_lazy("Model"), "model"),)
    outputs = (
        Port("service", gettext_lazy("Endpoint"), "service"),
        Port("figures", gettext_lazy("Metrics"), "figures"),
    )
    params = (
        Param("service", gettext_lazy("Endpoint"), required=True, help=gettext_lazy(
            "The name; created if it does not exist. For a project of another user: OWNER/NAME.")),
        Param("mode", gettext_lazy("Mode"), form="choice", default=AT_ONCE, choices=(
            (AT_ONCE, gettext_lazy("Immediately when ready")), *ServiceTrial.Mode.choices)),
        Param("percent", gettext_lazy("Share of requests, in percent"), form="whole", default=10, low=1, high=100,
              help=gettext_lazy("Share of requests of the rollout.")),
        Param("minutes", gettext_lazy("Minutes to observe"), form="number", default=30, low=0, high=10_080,
              help=gettext_lazy("Counted from the first request; then it is promoted automatically.")),
        Param("requests", gettext_lazy("Minimum requests"), form="whole", default=0, low=0, high=10_000_000,
              help=gettext_lazy("Observed until this many requests arrived, for a week at most.")),
        Param("most_failed", gettext_lazy("Maximum failures, in percent"), form="number", default=5, low=0, high=100,
              help=gettext_lazy(
                  "Of its requests. Above this value it is rolled back, as well as if it fails significantly "
                  "more often than the current model."
              )),
        Param("least_agreement", gettext_lazy("Minimum agreement, in percent"), form="number", default=0, low=0,
              high=100,
              help=gettext_lazy("Agreement of a shadow model with the actual predictions; 0: ignore.")),
        Param("cpus", gettext_lazy("Cores"), form="number", default=endpoints.DEFAULT_CPUS, low=0.1, high=256,
              help=gettext_lazy("For a new endpoint.")),
        Param("gpus", gettext_lazy("GPUs"), form="whole", default=0, low=0, high=1,
              help=gettext_lazy("For a new endpoint.")),
    )  # fmt: skip

    def check(self, params: Mapping[str, Any], user: User) -> None:
        refusals = Refusals()
        with refusals:
            name = params.get("service", "")
            if name and "/" in name:
                references.find_required(Service.objects.editable_by(user), name, user, field="service")
            elif name and references.find(Service.objects.editable_by(user), name, user) is None:
                endpoints.check(user=user, name=name)
        with refusals:
            if params.get("mode", AT_ONCE) != AT_ONCE and "percent" in params:
                trials.check_part(params["mode"], params["percent"])
        refusals.end()

    def start(self, call: Call) -> Begun:
        self.check(call.params, call.user)
        version = rows.model_version(call.only("model"), call.user)
        service = references.find(Service.objects.editable_by(call.user), call.params["service"], call.user)
        stored: dict[str, Any] = {"version": version.pk, "rule": {name: call.params[name] for name in RULE}}
        if service is None:
            service = endpoints.create(
                user=call.user, name=call.params["service"], model_version=version, cpus=call.params["cpus"],
                gpus_per_node=call.params["gpus"],
            )  # fmt: skip
            stored |= {"phase": ARRIVE, "made": True}
        else:
            stored |= _begin_change(service, version, call)
        return Begun(stored=stored | {"service": service.pk}, look_again=long_running.FIRST_LOOK)

    def go_on(self, row: StepRun) -> Done | None:
        service = _service(row)
        if service is None:
            raise StepFailed(wording.message("pipeline.service_gone"))
        return _watch(row, service) if row.kept["phase"] == TRY else _arrive(row, service)

    def aside(self, row: StepRun) -> Mapping[str, Any] | None:
        """Ask its servers whether they answer."""
        service = _service(row)
        if service is None:
            return {}
        trial = _trial(row)
        if trial is not None and not trial.outcome:
            trials.advance(trial)
            return {} if trial.answers or trial.outcome else None
        service = model_swaps.refresh(service)
        return {} if service.answers and service.model_version_id == row.kept["version"] else None

    def stop(self, row: StepRun) -> None:
        """Let the service have what it had; one that was made is stopped."""
        service, owner = _service(row), row.run.owner
        if service is None:
            return
        with suppress(DomainError):
            trial = _trial(row)
            if trial is not None and not trial.outcome:
                trials.roll_back(service=service, by=owner)
            elif service.next_job_id is not None and service.next_version_id == row.kept["version"]:
                _give_up(service, owner)
            elif row.kept.get("made") and service.model_version_id == row.kept["version"]:
                endpoints.stop(service=service, by=owner)


def _service(row: StepRun) -> Service | None:
    """Return the service, if the owner of the run may change it."""
    editable = Service.objects.editable_by(row.run.owner).select_related(
        "owner", "job", "next_job", "model_version__model"
    )
    service: Service | None = editable.filter(pk=row.kept["service"]).first()
    return service


def _trial(row: StepRun) -> ServiceTrial | None:
    visible = ServiceTrial.objects.select_related("job", "service__owner", "service__job", "version__model")
    trial: ServiceTrial | None = visible.filter(pk=row.kept.get("trial") or 0).first()
    return trial


def _begin_change(service: Service, version: ModelVersion, call: Call) -> dict[str, Any]:
    """Begin to lead a service to another model; what the row keeps of it."""
    if service.model_version_id != version.pk and service.is_up and call.params["mode"] != AT_ONCE:
        how = {"mode": call.params["mode"], "percent": call.params["percent"]}
        return {"phase": TRY, "trial": trials.start(service=service, version=version, by=call.user, **how).pk}
    if service.model_version_id != version.pk or service.next_job_id is not None:
        service = model_swaps.change_model(service=service, version=version, by=call.user)
    if not service.is_up and service.asleep_at is None:
        endpoints.start(service=service, by=call.user)
    return {"phase": ARRIVE}


def _give_up(service: Service, by: User) -> None:
    """Cancel a change: the service keeps its current model."""
    if service.model_version is not None:
        model_swaps.change_model(service=service, version=service.model_version, by=by)


def _arrive(row: StepRun, service: Service) -> Done | None:
    """Check whether the service answers all requests with the model."""
    wanted = row.kept["version"]
    if service.next_job_id is not None and service.next_version_id == wanted:
        if service.next_job is None or service.next_job.is_final:
            _give_up(service, row.run.owner)
            long_running.fail(row, wording.message("pipeline.server_ended_beside", name=service.name))
            return None
        long_running.queue_aside(row)
        return None
    if service.model_version_id != wanted:
        raise StepFailed(wording.message("pipeline.service_changed", name=service.name))
    if service.asleep_at is None and not service.answers:
        if not service.is_up:
            raise StepFailed(wording.message("pipeline.server_ended", name=service.name))
        long_running.queue_aside(row)
        return None
    numbers = row.kept.get("figures", {})
    message = wording.message("pipeline.served", name=service.name, version=service.model_name)
    return Done({"service": reference("service", service), "figures": figures(numbers, row)}, message=message)


def _watch(row: StepRun, service: Service) -> Done | None:
    """Promote what is tried once it was watched long enough, or roll it back."""
    trial = _trial(row)
    if trial is None or trial.outcome == ServiceTrial.Outcome.ROLLED_BACK:
        raise StepFailed(wording.message("pipeline.trial_rolled_back", name=service.name))
    if trial.outcome == ServiceTrial.Outcome.HALTED:
        raise StepFailed(wording.message("pipeline.trial_halted", name=service.name, why=trial.message))
    if trial.outcome == ServiceTrial.Outcome.PROMOTED:  # by a person
        long_running.store(row, phase=ARRIVE)
        return _arrive(row, service)
    if "since" not in row.kept:
        if not trial.answers:
            long_running.queue_aside(row)
            return None
        long_running.store(row, since=now().isoformat())
    tried, beside = counted.of_trial(trial)
    watched = now() - datetime.fromisoformat(row.kept["since"])
    over = watched >= timedelta(minutes=row.kept["rule"]["minutes"])
    enough = tried.requests >= row.kept["rule"]["requests"]
    long_running.store(row, figures=_shown(tried, beside))
    why = against(tried, row.kept["rule"], over=over and enough)
    if not why and not enough and watched > MAX_WATCH:
        why = wording.message("pipeline.trial_few", requests=tried.requests, most=row.kept["rule"]["requests"])
    if why:
        trials.roll_back(service=service, by=row.run.owner)
        long_running.fail(row, why)
        return None
    return _promote(row, service) if over and enough else None


def against(tried: Figures, rule: Mapping[str, float], *, over: bool) -> Message:
    """Why a trial is not to go on; empty where it may.

    Args:
        tried: requests that the tried version answered.
        rule: most_failed and least_agreement, in percent.
        over: it was watched for its time: what was counted decides, before only what is sure at 95 %.
    """
    share = tried.failed / tried.requests if over and tried.requests else tried.failed_low
    if tried.requests and 100 * share > rule["most_failed"]:
        return wording.message(
            "pipeline.trial_fails", failed=tried.failed, requests=tried.requests, bound=f"{rule['most_failed']:g}"
        )
    if over and rule["least_agreement"] and 100 * (tried.agreement or 0) < rule["least_agreement"]:
        bound, percent = f"{rule['least_agreement']:g}", tried.agreement_percent or "–"
        return wording.message("pipeline.trial_differs", percent=percent, bound=bound)
    return Message()


def _shown(tried: Figures, beside: Figures) -> dict[str, float]:
    """Return the metrics of a trial by name; metrics that were not measured are left out."""
    metrics = {
        "requests": tried.requests,
        "failed": tried.failed,
        "p95_ms": tried.p95_ms,
        "agreement": tried.agreement,
        "beside_requests": beside.requests,
        "beside_failed": beside.failed,
        "beside_p95_ms": beside.p95_ms,
    }
    return {name: value for name, value in metrics.items() if value is not None}


def _promote(row: StepRun, service: Service) -> Done | None:
    try:
        with transaction.atomic():
            trials.promote(service=service, by=row.run.owner)
    except (trials.NotReady, trials.NoTrial):  # its server starts again, or a person was faster: at the next look
        return None
    except DomainError as exc:
        trials.roll_back(service=service, by=row.run.owner)
        long_running.fail(row, wording.of_error(exc))
        return None
    long_running.store(row, phase=ARRIVE)
    fresh = _service(row)
    return _arrive(row, fresh) if fresh is not None else None
