"""Pages of environments: the list, the form of a new one, and acts of its panel on the queue's own job page."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST, require_safe

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib import ids
from aiplatform.lib.errors import DomainError
from aiplatform.lib.pages import check_valid_fields, errors_shown_on, needs
from training.environments import actions, lifecycle, panel, services
from training.environments.forms import EnvironmentForm, TaskType
from training.environments.models import Environment
from training.environments.orders import ORDERING
from training.programs import request_secrets
from training.programs.input_fields import written_variables
from training.runs import drafts
from workers.images import forms as image_forms
from workers.jobs import job_page
from workers.jobs.forms.resource_request import initial_of
from workers.jobs.resource_request import Resources
from workers.scheduling import preview

STATES = [
    ("", gettext_lazy("All states")),
    ("waiting", gettext_lazy("Waiting")),
    ("running", gettext_lazy("Running")),
    ("paused", gettext_lazy("Paused")),
    ("stopped", gettext_lazy("Stopped")),
    ("failed", gettext_lazy("Failed")),
]


@needs(Action.JOBS_VIEW)
@require_safe
def index(request: SignedInRequest) -> HttpResponse:
    """List visible workspaces; `?q=`, `?state=`, `?mine=1`, `?ordering=`. htmx gets the table only."""
    state, query = request.GET.get("state", ""), request.GET.get("q", "")
    rows = Environment.objects.visible_to(request.user).not_deleted().for_list().in_state(state).named_like(query[:100])
    if request.GET.get("mine") == "1":
        rows = rows.filter(job__owner=request.user)
    page = ORDERING.page(request, rows)
    for environment in page:
        environment.shown = panel.facts(environment, request.user)
    alive = any(not environment.job.is_final for environment in page)
    context = {"page": page, "states": STATES, "refresh": alive}
    return render(request, "environments/_table.html" if request.htmx else "environments/list.html", context)


@needs(Action.JOBS_SUBMIT)
def new(request: SignedInRequest) -> HttpResponse:
    """GET may begin from `?clone=` or `?version=`."""
    initial, pattern = _beginning(request)
    form = EnvironmentForm(request.POST or None, request.FILES or None, user=request.user, initial=initial)
    if form.is_bound:
        with errors_shown_on(form):
            form.take_code()
        if form.is_valid():
            with errors_shown_on(form):
                environment_request = services.EnvironmentRequest(**form.request_fields())
                return redirect("workers:job", services.submit(user=request.user, request=environment_request).pk)
        else:
            check_valid_fields(form, services.check_parts)
    context = {"form": form, "pattern": pattern}
    return render(request, "environments/new.html", context, status=422 if form.errors else 200)


@needs(Action.JOBS_SUBMIT)
@require_POST
def fit(request: SignedInRequest) -> HttpResponse:
    """Render the panel that shows whether the request fits now, waits, or never fits. Incomplete forms are accepted."""
    form = EnvironmentForm(request.POST, user=request.user)
    form.is_valid()
    verdict = preview.preview_request(
        request.user, image_forms.resources_of(form), kind=services.KIND, unclear=form.unclear()
    )
    return render(request, "workers/_fit.html", {"verdict": verdict, "image_fit": image_forms.fit_words(form)})


@needs(Action.JOBS_VIEW)
@require_safe
def state(request: SignedInRequest, pk: int) -> HttpResponse:
    """Render the panel only, polled while JupyterLab starts."""
    visible = Environment.objects.visible_to(request.user).select_related("job__owner", "job__cluster")
    return _panel(request, lifecycle.see_ready(get_object_or_404(visible, pk=pk)))


@needs(Action.JOBS_CONTROL)
@require_POST
def mark_needed(request: SignedInRequest, pk: int) -> HttpResponse:
    """Mark the workspace as still needed."""
    environment = _own(request, pk)
    return _done(
        request,
        environment,
        lambda: actions.mark_needed(environment, by=request.user),
        _("The workspace is kept running."),
    )


@needs(Action.JOBS_CONTROL)
@require_POST
def extend(request: SignedInRequest, pk: int) -> HttpResponse:
    """Two hours more, or a request for them."""
    environment = _own(request, pk)
    return _done(request, environment, lambda: actions.extend(environment, hours=actions.HOURS, by=request.user), "")


@needs(Action.JOBS_CONTROL)
@require_POST
def delete(request: SignedInRequest, pk: int) -> HttpResponse:
    """Remove one that has ended."""
    environment = _own(request, pk)
    try:
        actions.delete(environment, by=request.user)
    except DomainError as refusal:
        messages.error(request, refusal.message)
        return redirect("workers:job", pk)
    messages.info(request, _("%(name)s was deleted. Your home folder is kept.") % {"name": environment.job.name})
    return redirect("environments:list")


def _own(request: SignedInRequest, pk: int) -> Environment:
    own = Environment.objects.visible_to(request.user).editable_by(request.user).not_deleted()
    environment: Environment = get_object_or_404(own.select_related("job__owner", "job__cluster"), pk=pk)
    return environment


def _done(request: SignedInRequest, environment: Environment, act: Any, success: str) -> HttpResponse:
    try:
        granted = act()
    except DomainError as refusal:
        if request.htmx:
            raise
        messages.error(request, refusal.message)
        return redirect("workers:job", environment.pk)
    if request.htmx:
        return _panel(request, _own(request, environment.pk))
    pending = _("The cluster administrators were asked.")
    messages.info(request, success or (_("The time limit was extended.") if granted else pending))
    return redirect("workers:job", environment.pk)


def _panel(request: SignedInRequest, environment: Environment) -> HttpResponse:
    shown = job_page.panels(environment.job, request.user, only="environment")
    return render(request, "workers/_panels.html", {"job": environment.job, "panels": shown})


def _beginning(request: SignedInRequest) -> tuple[dict[str, Any], Environment | None]:
    """Return initial values of the form, and the environment they come from."""
    initial: dict[str, Any] = {"gpus_per_node": 0, "cpus": drafts.default_cpus()}
    if version := ids.number(request.GET.get("version", "")):
        initial["datasets"] = [version]
    if image := ids.number(request.GET.get("image", "")):
        initial["image"] = image
    number = ids.number(request.GET.get("clone", ""))
    if not number:
        return initial, None
    pattern = get_object_or_404(Environment.objects.visible_to(request.user).for_list(), pk=number)
    values = request_secrets.as_known_to(request.user, pattern.job, services.as_request(pattern))
    places: Any = {name: value for name, value in values.items() if name in Resources.__annotations__}
    names = ("description", "folder", "idle_hours", "image")
    begun = {name: values[name] for name in names} | initial_of(places)
    begun["task_type"] = TaskType.DISTRIBUTED if values["nodes"] > 1 else TaskType.REGULAR
    return begun | {
        "name": services.name_for(request.user),
        "snapshot": values["code"],
        "datasets": [version.pk for version in values["datasets"]],
        "variables": written_variables(values["variables"]),
        "secrets": "".join(f"{name}=\n" for name in pattern.secret_names),
    }, pattern
