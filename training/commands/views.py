"""Pages of commands: the list, and the form of a new one. One command is shown by the queue's own job page."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST, require_safe

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib import ids
from aiplatform.lib.pages import check_valid_fields, errors_shown_on, needs
from training.commands import services
from training.commands.forms import CommandForm
from training.commands.models import Command
from training.commands.orders import ORDERING
from training.programs import request_secrets, script
from training.programs.input_fields import written_variables
from training.runs import drafts
from workers.images import forms as image_forms
from workers.jobs.forms import following
from workers.jobs.forms.resource_request import initial_of
from workers.jobs.resource_request import Resources
from workers.scheduling import preview

STATES = [
    ("", gettext_lazy("All states")),
    ("waiting", gettext_lazy("Waiting")),
    ("running", gettext_lazy("Running")),
    ("paused", gettext_lazy("Paused")),
    ("completed", gettext_lazy("Completed")),
    ("failed", gettext_lazy("Failed")),
    ("stopped", gettext_lazy("Stopped")),
]


@needs(Action.JOBS_VIEW)
@require_safe
def index(request: SignedInRequest) -> HttpResponse:
    """List visible custom jobs; `?q=`, `?state=`, `?mine=1`, `?ordering=`. htmx gets the table only."""
    state, query = request.GET.get("state", ""), request.GET.get("q", "")
    rows = Command.objects.visible_to(request.user).for_list().in_state(state).named_like(query[:100])
    if request.GET.get("mine") == "1":
        rows = rows.filter(job__owner=request.user)
    page = ORDERING.page(request, rows)
    for command in page:
        command.line = script.shown(command.script).partition("\n")[0]
    alive = any(not command.job.is_final for command in page)
    context = {"page": page, "states": STATES, "refresh": alive}
    return render(request, "commands/_table.html" if request.htmx else "commands/list.html", context)


@needs(Action.JOBS_SUBMIT)
def new(request: SignedInRequest) -> HttpResponse:
    """GET may begin from `?clone=` or `?version=`."""
    initial, pattern = _beginning(request)
    form = CommandForm(request.POST or None, request.FILES or None, user=request.user, initial=initial)
    if form.is_bound:
        with errors_shown_on(form):
            form.take_code()
        if form.is_valid():
            with errors_shown_on(form):
                command = services.submit(user=request.user, request=services.CommandRequest(**form.request_fields()))
                if command.job.array_id:
                    return redirect("workers:array", command.job.array_id)
                return redirect("workers:job", command.pk)
        else:
            check_valid_fields(form, services.check_parts)
    context = {"form": form, "pattern": pattern}
    return render(request, "commands/new.html", context, status=422 if form.errors else 200)


@needs(Action.JOBS_SUBMIT)
@require_POST
def fit(request: SignedInRequest) -> HttpResponse:
    """Render the panel that shows whether the request fits now, waits, or never fits. Incomplete forms are accepted."""
    form = CommandForm(request.POST, user=request.user)
    form.is_valid()
    verdict = preview.preview_request(
        request.user, image_forms.resources_of(form), kind=services.KIND, unclear=form.unclear()
    )
    nodes, cards = form.total_devices()
    return render(
        request,
        "workers/_fit.html",
        {"verdict": verdict, "image_fit": image_forms.fit_words(form), "nodes": nodes, "cards": cards},
    )


def _beginning(request: SignedInRequest) -> tuple[dict[str, Any], Command | None]:
    """Return initial values of the form, and the command they come from."""
    initial: dict[str, Any] = {"gpus_per_node": 0, "cpus": drafts.default_cpus()}
    initial |= {"outputs_of": number} if (number := ids.number(request.GET.get("outputs_of", ""))) else {}
    if version := ids.number(request.GET.get("version", "")):
        initial["datasets"] = [version]
    if image := ids.number(request.GET.get("image", "")):
        initial["image"] = image
    number = ids.number(request.GET.get("clone", ""))
    if not number:
        return initial, None
    pattern = get_object_or_404(Command.objects.visible_to(request.user).for_list(), pk=number)
    values = request_secrets.as_known_to(request.user, pattern.job, services.as_request(pattern))
    places: Any = {name: value for name, value in values.items() if name in Resources.__annotations__}
    names = (
        "name", "command", "image", "output_path", "writes_checkpoints", "launcher", "processes", "worker_command",
        "array",
    )  # fmt: skip
    begun = {name: values[name] for name in names} | initial_of(places) | following.initial_of(pattern.job)
    return begun | {
        "snapshot": values["code"],
        "datasets": [version.pk for version in values["datasets"]],
        "variables": written_variables(values["variables"]),
        "secrets": "".join(f"{name}=\n" for name in pattern.secret_names),
    }, pattern
