"""Pages of the registry."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

from django.http import HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST, require_safe

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform import env
from aiplatform.lib.ordering import ListPage
from aiplatform.lib.pages import check_valid_fields, errors_as_messages, errors_shown_on, needs
from aiplatform.lib.zips import send_zip
from aiplatform.objects import bulk
from aiplatform.objects.pages import ObjectPages
from aiplatform.objects.tables import Column, MainColumn, Table
from inference.registry import (
    card_drafts,
    cards,
    class_colors,
    hardware_speeds,
    imports,
    metric_labels,
    model_jobs,
    model_page,
    packages,
    task_labels,
)
from inference.registry import registration as registry
from inference.registry.composition.views import parts_of
from inference.registry.filters import ModelFilters
from inference.registry.forms import ModelEditForm
from inference.registry.import_forms import BringForm, UploadForm, VersionForm
from inference.registry.import_trials import drafts, trials
from inference.registry.models import Model, ModelAlias, ModelImport, ModelTask, ModelVersion
from inference.registry.selftest import self_tests
from inference.registry.torch_export import exports
from inference.registry.uploads import on_disk
from workers.core import kinds
from workers.core.device_kinds import CPU
from workers.resources.nodes import device_rules

MAX_METRICS = 5


class ModelPages(ObjectPages[Model]):
    """The list of models, and the pages that edit and delete one."""

    model, form_class, filters = Model, ModelEditForm, ModelFilters
    namespace, basename, path = "inference", "model", "models/"
    url_names = {"detail": "model-detail", "new": "model-upload"}
    view_permission, change_permission = Action.MODELS_VIEW, Action.MODELS_MANAGE
    table = Table(
        MainColumn(
            _("Name"),
            "row.name",
            "name",
            is_public="row.visibility == 'public'",
            below="row.description",
            sample_kind="model",
        ),
        Column(_("Task"), "row.newest_task|task_word"),
        Column(_("Stage and aliases"), template="inference/_model_stage.html"),
        Column(_("Versions"), "row.newest_number|default:'–'", sort="versions", kind="num"),
        Column(_("Dataset"), "row.newest_data|default:'–'", sort="dataset"),
        Column(_("Metric"), template="inference/_model_metric.html", sort="figure", kind="num", css="nowrap"),
        Column(_("Size"), "row.newest_bytes|bytes", sort="size", kind="num", css="nowrap"),
        Column(_("Owner"), "row.owner", sort="owner"),
        Column(_("Changed"), "row.updated_at|ago", sort="changed", kind="time"),
        Column(_("Actions"), template="inference/_model_download.html", kind="actions"),
        libraries="inference sample",
        bulk=(
            bulk.compare("/models/compare/", "model", when="row.newest_number"),
            bulk.delete(
                "/api/v1/models/0/", _("All versions are deleted. Models in use are kept."), needs=Action.MODELS_MANAGE
            ),
        ),
    )
    region, art, title = "models", "models", _("Models")
    lead = _("Trained and imported models by version, with their lineage.")
    filter_label, no_match_text = _("Filter models"), _("No model matches.")
    empty_text = _("No models yet. A completed training job creates one; you can also import a model.")
    offers_sample = True
    new_title, empty_action, save_label = _("Import a model"), _("Upload model"), _("Save")
    delete_shows_refusals = False
    new_icon, list_template = "upload", "inference/model_list.html"

    def prepare(self, request: SignedInRequest, rows: ListPage) -> dict[str, Any]:
        """The choices of the filters that differ from user to user."""
        aliases = ModelAlias.objects.visible_to(request.user).order_by("name").values_list("name", flat=True)
        groups = request.user.user_groups.order_by("name").values_list("pk", "name")
        return {"aliases": [(name, name) for name in aliases.distinct()[:50]], "groups": groups}

    def change(self, request: SignedInRequest, form: Any, row: Model) -> None:
        registry.edit(model=row, by=request.user, **form.cleaned_data)

    def remove(self, request: SignedInRequest, row: Model) -> None:
        registry.delete(model=row, by=request.user)


@needs(Action.MODELS_MANAGE)
def model_upload(request: SignedInRequest) -> HttpResponse:
    """Upload a model."""
    initial = {name: request.GET[name] for name in ("job", "path", "name") if name in request.GET}
    form = UploadForm(request.POST or None, request.FILES or None, user=request.user, initial=initial)
    if form.is_valid():
        with errors_shown_on(form):
            return _page_of(_import_model(request, form))
    else:
        check_valid_fields(form, imports.check, user=request.user)
    return render(request, "inference/model_upload.html", _form_context(form), status=422 if form.errors else 200)


def _form_context(form: BringForm) -> dict[str, Any]:
    return {"form": form, "max_upload": env.MAX_UPLOAD_BYTES, "kept": form.kept_upload()}


@needs(Action.MODELS_VIEW)
def model_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """One model: its newest version in use (or `?version=2`) in full, the others as a list."""
    shared = model_page.context(request, pk, "model-detail")
    model, chosen = shared["model"], shared["chosen"]
    visible_data = None
    if chosen and chosen.dataset_version_id:
        from_data = type(chosen).dataset_version.field.related_model.objects.visible_to(request.user)
        visible_data = from_data.filter(pk=chosen.dataset_version_id).first()
    written = cards.read(model)
    is_draft = not any(written.values())
    if is_draft and chosen:
        written |= card_drafts.draft(chosen, visible_data)
    speed = _measurements(request, chosen) if chosen else {}
    task_names = dict(task_labels.choices())
    context = shared | speed | {
        "data": visible_data,
        "job_url": _job_url(request, chosen),
        "class_colors": class_colors.for_model(chosen) if chosen else {},
        "evaluations": chosen.evaluations.visible_to(request.user).for_card()[:8] if chosen else [],
        "hardware": hardware_speeds.for_version(chosen) if chosen else [],
        "measure_on": device_rules.on_offer(kinds.get(model_jobs.KIND).device_kinds)[::-1] if chosen else [],
        "overall": metric_labels.overall_metrics(chosen.task, chosen.metrics)[:MAX_METRICS] if chosen else [],
        "by_class": metric_labels.metrics_by_class(chosen.task, chosen.metrics) if chosen else None,
        "card_is_draft": is_draft,
        "use_code": packages.commands(chosen) if chosen else "",
        "card_parts": cards.parts(written),
        **(_self_test(request, chosen) | _torch(chosen) | model_page.sections(request, chosen) if chosen else {}),
        "parts": parts_of(chosen, request.user) if chosen else [],
        "declared_task": task_names.get(chosen.facts.get("declared_task", "")) if chosen else "",
    }  # fmt: skip
    return render(request, "inference/model_detail.html", context)


def _measurements(request: SignedInRequest, version: ModelVersion) -> dict[str, Any]:
    rows = model_jobs.measurements(version, request.user)
    return {"measurements": rows, "measuring": any(not row.figures and not row.job.published for row in rows)}


def _self_test(request: SignedInRequest, version: ModelVersion) -> dict[str, Any]:
    row = self_tests.for_version(version)
    carried = row is not None and row.pictures and self_tests.may_carry_pictures(version.model, row, request.user)
    return {"self_test": row, "carries_pictures": carried}


def _torch(version: ModelVersion) -> dict[str, Any]:
    newest = exports.latest_task(version)
    made = newest if newest is None or newest.figures else exports.latest_program(version)
    return {"can_torch": exports.can_export(version), "torch": newest, "torch_made": made}


@needs(Action.MODELS_VIEW)
@require_safe
def version_speed(request: SignedInRequest, pk: int) -> HttpResponse:
    """The table of measurements alone, which is fetched again while one is on its way."""
    version = get_object_or_404(ModelVersion.objects.visible_to(request.user), pk=pk)
    return render(request, "inference/_measurements.html", {"chosen": version} | _measurements(request, version))


def _job_url(request: SignedInRequest, version: ModelVersion | None) -> str:
    """Page of the training behind a version, where the user may see it."""
    job = version.job if version else None
    if job is None or job.kind not in kinds.names():
        return ""
    return kinds.get(job.kind).url(job) if type(job).objects.visible_to(request.user).filter(pk=job.pk).exists() else ""


@needs(Action.MODELS_MANAGE)
def version_upload(request: SignedInRequest, pk: int) -> HttpResponse:
    """Add a version to one's own model."""
    model = get_object_or_404(Model.objects.editable_by(request.user), pk=pk)
    form = VersionForm(request.POST or None, request.FILES or None, user=request.user)
    if form.is_valid():
        with errors_shown_on(form):
            return _page_of(_import_model(request, form, model=model))
    context = _form_context(form) | {"model": model}
    return render(request, "inference/version_upload.html", context, status=422 if form.errors else 200)


def _import_model(request: SignedInRequest, form: BringForm, **fields: Any) -> ModelVersion | ModelTask | ModelImport:
    """Import the model of a valid form; returns a version, the job that will create it, or an import to confirm."""
    values, declared = form.cleaned_data, form.declared()
    if not form.is_complete:
        brought = _source(request, values)
        target = fields or {"name": values["name"]}
        return drafts.create(user=request.user, brought=brought, **target)
    fields |= form.about() | {"user": request.user, "declared": declared}
    with ExitStack() as open_files:
        bring: Callable[..., ModelVersion | ModelTask] = imports.import_model
        if form.is_trial:
            pictures = open_files.enter_context(trials.examples(values["pictures"]))
            bring = partial(trials.submit, pictures=pictures, version=values["dataset"])
        if values["file"]:
            archive, filename = open_files.enter_context(on_disk(values["file"]))
            return bring(brought=imports.from_upload(archive, filename, declared, tried=form.is_trial), **fields)
        return bring(brought=_source(request, values), **fields)


def _source(request: SignedInRequest, values: dict[str, Any]) -> imports.ModelSource:
    if (upload := values["upload_id"]) is not None:
        return imports.from_upload(upload.file, upload.filename, tried=True)
    return imports.from_path(request.user, values["path"], values["job"])


def _page_of(made: ModelVersion | ModelTask | ModelImport) -> HttpResponse:
    if isinstance(made, ModelImport):
        return redirect("inference:model-import", made.pk)
    if isinstance(made, ModelTask):
        return redirect("workers:job", made.job_id)
    return HttpResponseRedirect(f"{reverse('inference:model-detail', args=[made.model_id])}?version={made.number}")


@require_POST
@needs(Action.MODELS_MANAGE)
def version_delete(request: SignedInRequest, pk: int) -> HttpResponse:
    """Remove one version; the last one takes the model with it."""
    version = get_object_or_404(ModelVersion.objects.editable_by(request.user).select_related("model"), pk=pk)
    model = version.model_id
    registry.delete_version(version=version, by=request.user)
    left = Model.objects.visible_to(request.user).filter(pk=model).exists()
    return HttpResponseRedirect(
        reverse("inference:model-detail", args=[model]) if left else reverse("inference:model-list")
    )


@require_POST
@needs(Action.EVALUATIONS_SUBMIT)
def version_measure(request: SignedInRequest, pk: int) -> HttpResponse:
    """Queue a measurement of how fast a version answers, on the processor or on a kind of card (`device`)."""
    version = get_object_or_404(ModelVersion.objects.usable_by(request.user).select_related("model"), pk=pk)
    kind, card = device_rules.parsed(request.POST.get("device") or CPU.name)
    with errors_as_messages(request):
        gpus = 0 if kind == CPU.name else 1
        model_jobs.measure(user=request.user, version=version, gpus=gpus, device_model=card if gpus else "")
    page = reverse("inference:model-detail", args=[version.model_id])
    return HttpResponseRedirect(f"{page}?version={version.number}#h-speed")


@needs(Action.MODELS_VIEW)
def version_download(request: SignedInRequest, pk: int) -> HttpResponseBase:
    """All files of a version as one zip."""
    version = get_object_or_404(ModelVersion.objects.visible_to(request.user).select_related("model"), pk=pk)
    files = [(entry["name"], version.path, entry["name"]) for entry in version.files]
    return send_zip(request, files, f"{version.model.name}_v{version.number}.zip")


@needs(Action.MODELS_VIEW)
@require_safe
def version_package(request: SignedInRequest, pk: int) -> HttpResponseBase:
    """A version as a zip that answers pictures by one command."""
    version = get_object_or_404(ModelVersion.objects.visible_to(request.user).select_related("model"), pk=pk)
    return send_zip(request, packages.entries(version, by=request.user), packages.filename(version))
