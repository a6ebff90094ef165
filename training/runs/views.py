"""Pages of trainings: the list, and one training with its tabs."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST, require_safe

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib import ids
from aiplatform.lib.columns import USER_NAMES, narrow
from aiplatform.lib.downloads import send_file
from aiplatform.lib.pages import errors_as_messages, errors_shown_on, needs
from aiplatform.lib.secret_names import mask_params, mask_text
from aiplatform.lib.zips import send_zip
from aiplatform.objects import bulk
from training.presets.catalog import PRESETS
from training.programs import layout, program
from training.programs.filters import STATES
from training.runs import (
    checkpoints,
    extra_options,
    jobs,
    parameter_sets,
    planned,
    previews,
    profiles,
    publishers,
    results,
    snippets,
    steering,
)
from training.runs.filters import TrainingFilters
from training.runs.forms import RestoreForm
from training.runs.models import ParameterSet, TrainingJob
from workers.core.kinds import Fact
from workers.jobs import job_page, job_tabs
from workers.jobs.output import files as output_files
from workers.jobs.output import phase_words

TABS = [
    ("job-detail", gettext_lazy("Overview")),
    ("job-log", gettext_lazy("Console")),
    ("job-metrics", gettext_lazy("Metrics")),
    ("job-images", gettext_lazy("Images")),
    ("job-ports", gettext_lazy("Ports")),
    ("job-files", gettext_lazy("Files")),
    ("job-events", gettext_lazy("Events")),
    ("job-spec", gettext_lazy("Spec")),
]
ROUTES = {  # what a page of any job calls a tab, and the route of it here
    job_tabs.CONSOLE: "training:job-log",
    job_tabs.METRICS: "training:job-metrics",
    job_tabs.PORTS: "training:job-ports",
    job_tabs.FILES: "training:job-files",
    job_tabs.EVENTS: "training:job-events",
    job_tabs.SPEC: "training:job-spec",
}
TEMPLATES = {
    "_job_acts": "training/_job_acts.html",
    "job-detail": "training/job_detail.html",
    "job-log": "training/job_log.html",
    "job-metrics": "training/job_metrics.html",
    "job-images": "training/job_images.html",
    "job-ports": "training/job_ports.html",
    "job-files": "training/job_files.html",
    "job-events": "training/job_events.html",
    "job-spec": "training/job_spec.html",
}


def training_or_404(request: SignedInRequest, pk: int) -> TrainingJob:
    """The training, if the reader may see it; else 404."""
    rows = TrainingJob.objects.visible_to(request.user).for_list()
    rows = rows.select_related("eval_version__dataset", "code", "parent__job")
    read = {
        "job__owner": USER_NAMES, "version": ("number",), "version__dataset": ("name",), "eval_version": ("number",),
        "eval_version__dataset": ("name",), "parent__job": ("name",),
    }  # fmt: skip
    return get_object_or_404(narrow(rows, **read), pk=pk)


BULK = (
    bulk.compare("/training/compare/", "training", least=1),
    bulk.stop(
        "/api/v1/training/jobs/0/stop/",
        gettext_lazy("The runs end immediately and count as stopped. Checkpoints are kept."),
        needs=Action.TRAINING_CONTROL,
    ),
)


@needs(Action.TRAINING_VIEW)
@require_safe
def job_list(request: SignedInRequest) -> HttpResponse:
    """List visible trainings; `?q=`, `?state=`, `?mine=1`, `?looks=1`, `?ordering=`. htmx gets the table."""
    rows: Any = TrainingFilters.for_page(request, TrainingJob.objects.visible_to(request.user).for_table()).qs
    if request.GET.get("looks") != "1":
        rows = rows.without_looks()
    page = TrainingFilters.orders.page(request, rows)
    results.add_list_metrics(page.rows)
    alive = any(not training.job.is_final for training in page)
    context = {"page": page, "states": STATES, "refresh": alive, "bulk": BULK}
    context["planned"] = planned.shown(request.user)
    return render(request, "training/_job_table.html" if request.htmx else "training/job_list.html", context)


def panels_of(request: SignedInRequest, training: TrainingJob, tab: str) -> dict[str, Any]:
    """What other rooms add to one tab."""
    return {"panels": job_page.panels(training.job, request.user, tab=tab)}


def shown(request: SignedInRequest, training: TrainingJob, tab: str, **more: Any) -> HttpResponse:
    """One tab of a training's page, see TEMPLATES."""
    preset = PRESETS.get(training.preset)
    pictured = preset.looks if preset else bool(training.preset)
    context = {
        "training": training,
        "preset": preset,
        "tab": tab,
        "tabs": TABS if pictured else [tab for tab in TABS if tab[0] != "job-images"],
        "result": publishers.result(training) if training.published_attempt else None,
        **job_page.context(training.job, request.user),
        **more,
    }
    return render(request, TEMPLATES[tab], context)


@needs(Action.TRAINING_VIEW)
@require_safe
def job_acts(request: SignedInRequest, pk: int) -> HttpResponse:
    """The buttons at the top alone, fetched again when the training moved."""
    return shown(request, training_or_404(request, pk), "_job_acts")


@needs(Action.TRAINING_VIEW)
@require_safe
def job_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """Show the overview, or redirect to the tab named by `?tab=`."""
    training = training_or_404(request, pk)
    tab = job_tabs.find(request.GET.get("tab", "")).name
    if tab != job_tabs.OVERVIEW:
        return redirect(ROUTES[tab], pk)
    preset = PRESETS.get(training.preset)
    changed = parameter_sets.differences(preset, training.params if preset else mask_params(training.params))
    shown_figures = list(results.readable(training.metrics))
    return shown(
        request,
        training,
        "job-detail",
        changed=changed,
        figures=shown_figures,
        **panels_of(request, training, job_tabs.OVERVIEW),
        events=job_page.events(training.job, job_page.NEWEST_EVENTS),
        few=True,
        extra=extra_options.written(training.extra),
        further=list(training.inputs.all()),
        facts=_program_facts(training),
        set_use=_set_use(request, training),
    )


def _set_use(request: SignedInRequest, training: TrainingJob) -> dict[str, Any] | None:
    """Return the parameter set that the training was started from, and whether the reader may see it."""
    use = getattr(training, "set_use", None)
    if use is None:
        return None
    number = use.version and use.version.parameter_set_id
    is_visible = bool(number) and ParameterSet.objects.visible_to(request.user).filter(pk=number).exists()
    changed = parameter_sets.is_changed(training, use)
    return {"name": use.name, "version": use.version, "seen": is_visible, "changed": changed}


def _program_facts(training: TrainingJob) -> list[Fact]:
    """Return the program of custom code, how it is started, and its variables."""
    facts = program.script_facts(training)
    if training.launcher and layout.is_needed(training):
        facts.append(Fact(_("Launcher"), layout.started_words(training)))
    return facts + program.variable_facts(training)


@needs(Action.TRAINING_VIEW)
@require_safe
def job_log(request: SignedInRequest, pk: int) -> HttpResponse:
    training = training_or_404(request, pk)
    more = panels_of(request, training, job_tabs.CONSOLE)
    return shown(request, training, "job-log", log_phases=phase_words.phases(), **more)


@needs(Action.TRAINING_VIEW)
@require_safe
def job_metrics(request: SignedInRequest, pk: int) -> HttpResponse:
    """Curves, and where the time of a step goes; `?profile=awaited` has nothing to say while there is none."""
    training = training_or_404(request, pk)
    profile = _profile(request, training)
    if request.GET.get("profile") == "awaited" and not profile.get("profile"):
        return HttpResponse(status=204)  # htmx leaves what is shown as it is
    return shown(request, training, "job-metrics", **panels_of(request, training, job_tabs.METRICS), **profile)


def _profile(request: SignedInRequest, training: TrainingJob) -> dict[str, Any]:
    """Where the time of its steps goes, of presets that can say so and of scripts that say so themselves."""
    preset, mode = PRESETS.get(training.preset), previews.mode_of(training)
    if training.preset and (preset is None or not preset.looks or mode not in ("", "profile")):
        return {}
    look, profile = profiles.latest(training, request.user)
    return {
        "profiles": True,
        "profile_look": look,
        "profile": profile,
        "may_profile": bool(preset) and not mode and request.user.can(Action.TRAINING_SUBMIT),
        "most_steps": previews.MAX_STEPS,
        "profile_loop": profiles.LOOP,
        "profile_any_loop": profiles.ANY_LOOP,
    }


@needs(Action.TRAINING_SUBMIT)
@require_POST
def job_profile(request: SignedInRequest, pk: int) -> HttpResponse:
    """Queue a profile; what it found appears on the tab of metrics."""
    training = training_or_404(request, pk)
    with errors_as_messages(request):
        previews.profile(training, by=request.user, steps=ids.number(request.POST.get("steps", "")) or 0)
    return redirect("training:job-metrics", pk)


@needs(Action.TRAINING_VIEW)
@require_safe
def job_ports(request: SignedInRequest, pk: int) -> HttpResponse:
    training = training_or_404(request, pk)
    return shown(request, training, "job-ports", **panels_of(request, training, job_tabs.PORTS))


@needs(Action.TRAINING_VIEW)
@require_safe
def job_files(request: SignedInRequest, pk: int) -> HttpResponse:
    training = training_or_404(request, pk)
    attempt = results.attempt_of(training, request.GET.get("attempt", ""))
    outputs, more = output_files.listed(training.job, attempt)
    return shown(
        request,
        training,
        "job-files",
        attempt=attempt,
        attempts=output_files.attempts(training.job),
        outputs=outputs,
        folders=output_files.by_folder(outputs),
        more=more,
        total_bytes=sum(output.size_bytes for output in outputs),
        checkpoints=checkpoints.valid(training),
        **panels_of(request, training, job_tabs.FILES),
    )


@needs(Action.TRAINING_VIEW)
@require_safe
def job_file(request: SignedInRequest, pk: int, attempt: int) -> Any:
    """One output file; `?path=`. Honours Range."""
    training = training_or_404(request, pk)
    path = request.GET.get("path", "")
    descriptor = output_files.open_output(training.job, attempt, path)
    return send_file(request, descriptor, path.rsplit("/", 1)[-1], inline="inline" in request.GET)


@needs(Action.TRAINING_VIEW)
@require_safe
def job_zip(request: SignedInRequest, pk: int, attempt: int) -> Any:
    training = training_or_404(request, pk)
    return send_zip(request, output_files.for_zip(training.job, attempt), f"{training.job.name}-{attempt}.zip")


@needs(Action.TRAINING_VIEW)
@require_safe
def job_events(request: SignedInRequest, pk: int) -> HttpResponse:
    return shown(request, training_or_404(request, pk), "job-events")


@needs(Action.TRAINING_VIEW)
@require_safe
def job_spec(request: SignedInRequest, pk: int) -> HttpResponse:
    training = training_or_404(request, pk)
    address = request.build_absolute_uri("/").rstrip("/")
    ways = [
        ("cli", _("Command line"), snippets.as_cli(training)),
        ("curl", "curl", snippets.as_curl(training, address)),
        ("python", "Python", snippets.as_python(training, address)),
    ]
    secrets = snippets.secrets_of(training)
    more = panels_of(request, training, job_tabs.SPEC)
    quiet = [(key, label, mask_text(text, secrets)) for key, label, text in ways]
    return shown(request, training, "job-spec", spec=mask_text(snippets.pretty(training), secrets), ways=quiet, **more)


@needs(Action.TRAINING_CONTROL)
@require_POST
def job_steer(request: SignedInRequest, pk: int, verb: str) -> HttpResponse:
    """Pause, continue, finish or stop: sends the control command; the state follows."""
    training = training_or_404(request, pk)
    with errors_as_messages(request):
        steering.steer(training, verb, by=request.user)
    if request.htmx:
        return HttpResponse(status=204, headers={"HX-Refresh": "true"})
    return redirect("training:job-detail", pk)


@needs(Action.TRAINING_CONTROL)
def job_restore(request: SignedInRequest, pk: int) -> HttpResponse:
    """Restore an ended training from a chosen checkpoint, with changed settings where wanted."""
    training = training_or_404(request, pk)
    preset = PRESETS.get(training.preset)
    rows = checkpoints.valid(training)
    choices = [(row.name, checkpoints.label(row)) for row in rows]
    initial = {"gpus_per_node": training.job.gpus_per_node, "nodes": training.job.wanted_nodes}
    form = RestoreForm(
        request.POST or None,
        preset=preset,
        params=training.params,
        choices=choices,
        initial={**initial, "checkpoint": request.GET.get("checkpoint", choices[0][0] if choices else "")},
    )
    if request.method == "POST" and form.is_valid():
        with errors_shown_on(form):
            jobs.restore(
                training,
                by=request.user,
                checkpoint=form.cleaned_data["checkpoint"],
                params=form.params_of(preset) if preset else None,
                gpus_per_node=form.cleaned_data["gpus_per_node"],
                nodes=form.cleaned_data["nodes"],
            )
            return redirect("training:job-detail", pk)
    context = {"training": training, "job": training.job, "form": form, "rows": rows, "preset": preset}
    return render(request, "training/job_restore.html", context, status=422 if form.errors else 200)
