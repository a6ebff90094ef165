"""Pages of pipelines: the list, one pipeline with its runs, a run, and what people do there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST, require_safe

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from accounts.models import User
from accounts.services import named_secrets
from aiplatform.lib.ordering import ListPage
from aiplatform.lib.pages import errors_as_messages, errors_shown_on, is_name_confirmed, needs
from aiplatform.objects import bulk
from aiplatform.objects.pages import ObjectPages
from aiplatform.objects.tables import Column, MainColumn, Table
from inference.pipelines import (
    approval_cards,
    approvals,
    graph,
    kinds,
    run_presentation,
    runs,
    secret_usage,
    sketch,
    step_detail,
    templates,
    trigger_settings,
    writing,
)
from inference.pipelines.filters import RUNS, PipelineFilters
from inference.pipelines.forms import NewPipelineForm, PipelineForm, RunForm
from inference.pipelines.models import Pipeline, PipelineRun, PipelineVersion, StepApproval


class PipelinePages(ObjectPages[Pipeline]):
    """The list of pipelines, with questions of runs to the reader."""

    model, filters = Pipeline, PipelineFilters
    namespace = "pipelines"
    view_permission, change_permission = Action.JOBS_VIEW, Action.JOBS_SUBMIT
    table = Table(
        MainColumn(_("Name"), "row.name", sort="name", below="row.description"),
        Column(_("Version"), '{% firstof row.newest "–" %}', kind="num"),
        Column(_("Newest run"), template="pipelines/_newest_run.html"),
        Column(_("Runs"), "row.run_count", kind="num"),
        Column(_("Owner"), "row.owner.get_full_name", sort="owner"),
        Column(_("Changed"), "row.updated_at|ago", sort="changed", kind="time"),
        anchor="pipeline",
        bulk=(
            bulk.delete(
                "/api/v1/pipelines/0/",
                _("Versions and triggers are deleted; jobs of runs are kept."),
                needs=Action.JOBS_SUBMIT,
            ),
        ),
    )
    region, art, layout, title = "pipelines", "pipeline", "wide", _("Pipelines")
    lead = _("Steps from data to a deployed model, run manually, by schedule or on events.")
    filter_label, no_match_text = _("Filter pipelines"), _("No pipeline matches this filter.")
    empty_text = _("No pipelines yet. Define the steps from data to a deployed model, and run them automatically.")
    new_title, list_template = _("New pipeline"), "pipelines/list.html"

    def prepare(self, request: SignedInRequest, rows: ListPage) -> dict[str, Any]:
        states = dict(PipelineRun.State.choices)
        for row in rows:
            row.last_label = states.get(row.last_state, "")
        open_approvals = StepApproval.objects.visible_to(request.user).answerable_by(request.user)
        approvals = open_approvals.select_related("step_run__run__pipeline")
        return {
            "asked": [approval for approval in approvals if not approval.answers.filter(person=request.user).exists()]
        }


@needs(Action.JOBS_SUBMIT)
def new(request: SignedInRequest) -> HttpResponse:
    """Create a pipeline, empty or from a template, and open the editor."""
    form = NewPipelineForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        with errors_shown_on(form):
            own = Pipeline.objects.visible_to(request.user).filter(owner=request.user)
            taken = set(own.values_list("name", flat=True))
            pipeline = writing.create(user=request.user, **form.to_params(taken))
            return redirect("pipelines:edit", pipeline.pk)
    cards = [
        {
            "name": template.name,
            "label": template.label,
            "description": template.description,
            "sketch": sketch.of_spec(template.spec),
        }
        for template in templates.TEMPLATES
    ]
    context = {"form": form, "cards": cards}
    return render(request, "pipelines/new.html", context, status=422 if form.errors else 200)


@require_safe
@needs(Action.JOBS_VIEW)
def detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """One pipeline: its graph, versions and runs. htmx gets the runs alone."""
    pipeline: Pipeline = get_object_or_404(Pipeline.objects.visible_to(request.user).for_list(), pk=pk)
    page = RUNS.page(request, PipelineRun.objects.visible_to(request.user).filter(pipeline=pipeline).for_list())
    for row in page.rows:
        row.trigger_word, row.elapsed = run_presentation.trigger_word(row), run_presentation.took_s(row)
    context: dict[str, Any] = {"pipeline": pipeline, "page": page, "refresh": any(not row.is_over for row in page.rows)}
    if request.htmx:
        return render(request, "pipelines/_runs.html", context)
    version = writing.newest(pipeline)
    may_edit = Pipeline.objects.editable_by(request.user).filter(pk=pk).exists()
    context |= {
        "tab": "detail",
        "version": version,
        "triggers": [
            {"row": row, "next": trigger_settings.next_times(row), "words": run_presentation.trigger_words(row),
             "older": trigger_settings.has_older(row)}
            for row in pipeline.triggers.visible_to(request.user).select_related("dataset", "service", "owner")
        ],
        "may_edit": may_edit and request.user.can(Action.JOBS_SUBMIT),
        "may_delete": may_edit and request.user.can(Action.JOBS_CONTROL),
        "form": PipelineForm(instance=pipeline),
        "has_draft": pipeline.drafts.filter(person=request.user).exists(),
        "graph": {
            "catalogue": kinds.catalogue(), "spec": version.spec if version else dict(writing.EMPTY),
            "layout": pipeline.layout,
        },
    }  # fmt: skip
    return render(request, "pipelines/detail.html", context)


@require_POST
@needs(Action.JOBS_SUBMIT)
def change(request: SignedInRequest, pk: int) -> HttpResponse:
    """Change name, description or who sees it."""
    pipeline = _editable(request, pk)
    form = PipelineForm(request.POST, instance=pipeline)
    if form.is_valid():
        with errors_as_messages(request):
            writing.change(pipeline, **form.cleaned_data)
    else:
        messages.error(request, " ".join(str(text) for texts in form.errors.values() for text in texts))
    return redirect("pipelines:detail", pk)


@require_POST
@needs(Action.JOBS_CONTROL)
def delete(request: SignedInRequest, pk: int) -> HttpResponse:
    """Delete a pipeline, once its name was typed."""
    pipeline = _editable(request, pk)
    if not is_name_confirmed(request, pipeline.name):
        return redirect("pipelines:detail", pk)
    with errors_as_messages(request):
        writing.delete(pipeline)
        messages.info(request, _("Pipeline %(name)s deleted.") % {"name": pipeline.name})
        return redirect("pipelines:list")
    return redirect("pipelines:detail", pk)


@needs(Action.JOBS_SUBMIT)
def run_new(request: SignedInRequest, pk: int) -> HttpResponse:
    """Begin a run: `?version=`, parameters, how it is carried out."""
    pipeline: Pipeline = get_object_or_404(Pipeline.objects.visible_to(request.user), pk=pk)
    # what is sent names the version that was shown: a newer one may have come meanwhile
    version = _version(pipeline, request.POST.get("version") or request.GET.get("version", ""))
    form = RunForm(request.POST or None, spec=graph.parse(version.spec))
    if request.method == "POST" and form.is_valid():
        with errors_shown_on(form):
            how = {name: form.cleaned_data[name] for name in ("limit", "use_cache", "fail_fast")}
            run = runs.start(user=request.user, version=version, parameters=form.parameters(), **how)
            return redirect("pipelines:run", run.pk)
    context = {
        "pipeline": pipeline,
        "version": version,
        "form": form,
        "lent": secret_usage.lent(version, request.user),
        "secrets_page": named_secrets.PAGE,
    }
    return render(request, "pipelines/run_new.html", context, status=422 if form.errors else 200)


def _version(pipeline: Pipeline, word: str) -> PipelineVersion:
    rows = pipeline.versions.order_by("-number")
    row = rows.filter(number=int(word)).first() if word.isascii() and word.isdigit() and len(word) < 9 else rows.first()
    if row is None:
        raise Http404
    return row


@require_safe
@needs(Action.SELF_MANAGE)
def run_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """One run: its graph with live states, its steps, questions; `?step=` opens one. htmx gets what changes.

    Whoever is asked sees the run, also where their roles show them no jobs.
    """
    rows = PipelineRun.objects.visible_to(request.user)
    sees_jobs = request.user.can(Action.JOBS_VIEW)
    run: PipelineRun = get_object_or_404((rows if sees_jobs else rows.put_to(request.user)).for_list(), pk=pk)
    steps = run_presentation.steps_of(run, request.user)
    is_open = run_presentation.is_open(run, request.user)
    shown_spec = run.spec if is_open else run.version.spec
    spec = graph.parse(shown_spec, of_run=True)
    may = PipelineRun.objects.editable_by(request.user).filter(pk=pk).exists()
    context: dict[str, Any] = {
        "run": run,
        "rows": _step_rows(run, spec, steps, request.user),
        "counts": run_presentation.counts_of(steps),
        "may_control": may and request.user.can(Action.JOBS_CONTROL),
        "may_retry": run.owner_id == request.user.pk or request.user.sees_everything,
        "is_open": is_open,
        "is_live": run_presentation.is_live(run),
        "times": run_presentation.times_of(run),
        "eta_s": run_presentation.eta_s(run, spec, steps) if run_presentation.is_live(run) else None,
        "elapsed_s": run_presentation.took_s(run),
        "asked": [
            step | {"card": approval_cards.build(spec, key, steps, request.user)}
            for key, step in steps.items()
            if step["approval"] and step["approval"]["mine"]
        ],
    }  # fmt: skip
    if (chosen := request.GET.get("step", "")) in steps and chosen in spec.steps:
        kind = kinds.label_of(spec.steps[chosen].kind)
        context["opened"] = step_detail.build_context(run, chosen, steps[chosen], request.user) | {"kind": kind}
    context["live"] = {"steps": steps, "refresh_s": request.user.refresh_s if context["is_live"] else 0}
    if request.htmx:
        opens = request.htmx.target == "run-step"
        return render(request, "pipelines/_run_step.html" if opens else "pipelines/_run_live.html", context)
    context["graph"] = {"catalogue": kinds.catalogue(), "spec": shown_spec, "layout": run.pipeline.layout}
    return render(request, "pipelines/run.html", context)


def _step_rows(
    run: PipelineRun, spec: graph.Spec, steps: Mapping[str, dict[str, Any]], user: User
) -> list[dict[str, Any]]:
    """The steps of a run as its table shows them, in their order."""
    return [
        {
            "key": key, "kind": kinds.label_of(spec.steps[key].kind), **steps[key],
            "results": run_presentation.results_of(steps[key]["outputs"], user),
            "item_words": run_presentation.item_words(steps[key]["items"]),
            "here": f"{run_presentation.run_page(run)}?{urlencode({'step': key})}",
        }
        for key in spec.order()
        if key in steps
    ]  # fmt: skip


@require_POST
@needs(Action.JOBS_CONTROL)
def run_act(request: SignedInRequest, pk: int, verb: str) -> HttpResponse:
    """Cancel a run, retry from a step, or skip one."""
    rows = PipelineRun.objects.visible_to(request.user).editable_by(request.user)
    run: PipelineRun = get_object_or_404(rows, pk=pk)
    step = request.POST.get("step", "")[:170]
    with errors_as_messages(request):
        if verb == "cancel":
            runs.cancel(run)
        elif verb == "retry":
            runs.retry(run, step, by=request.user, use_cache=request.POST.get("anew") != "1")
        else:
            runs.skip(run, step)
    return redirect("pipelines:run", pk)


@require_POST
@needs(Action.SELF_MANAGE)
def approval_answer(request: SignedInRequest, pk: int) -> HttpResponse:
    """Answer a question."""
    approval: StepApproval = get_object_or_404(
        StepApproval.objects.visible_to(request.user).put_to(request.user), pk=pk
    )
    with errors_as_messages(request):
        comment = request.POST.get("comment", "")
        approvals.answer(approval, by=request.user, answer=request.POST.get("answer", ""), comment=comment)
        messages.info(request, _("Your answer was saved. The run continues automatically."))
    return redirect("pipelines:run", approval.step_run.run_id)


def _editable(request: SignedInRequest, pk: int) -> Pipeline:
    rows = Pipeline.objects.visible_to(request.user).editable_by(request.user)
    pipeline: Pipeline = get_object_or_404(rows, pk=pk)
    return pipeline


@require_safe
@needs(Action.JOBS_SUBMIT)
def edit(request: SignedInRequest, pk: int) -> HttpResponse:
    """Show the canvas with the user's draft."""
    pipeline = _editable(request, pk)
    draft = writing.draft_of(pipeline, request.user)
    urls = {
        "draft": reverse("api-pipeline-draft", args=[pk]), "check": reverse("api-pipeline-check"),
        "versions": reverse("api-pipeline-versions", args=[pk]), "run": reverse("pipelines:run-new", args=[pk]),
        "page": reverse("pipelines:detail", args=[pk]),
    }  # fmt: skip
    editor_data = {"spec": draft.spec, "layout": draft.layout, "revision": draft.revision, "urls": urls}
    context = {
        "pipeline": pipeline,
        "given": editor_data | {"owner": request.user.pk},
        "catalogue": kinds.catalogue(request.user),
    }
    return render(request, "pipelines/edit.html", context)
