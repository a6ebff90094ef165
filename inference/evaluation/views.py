"""Pages of evaluations."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib import ids
from aiplatform.lib.downloads import send_file
from aiplatform.lib.files import OutsideRoot, open_beneath
from aiplatform.lib.pages import check_valid_fields, errors_shown_on, needs
from aiplatform.lib.zips import send_zip
from datasets.models import DatasetVersion
from inference.evaluation import error_datasets, evaluations, promotion, results, saved_parameters
from inference.evaluation.custom_scripts import presentation as telling_of_script
from inference.evaluation.forms import EvaluationForm
from inference.evaluation.metric_labels import GROUP_LABELS
from inference.evaluation.models import SPLIT_LABELS, Evaluation, EvaluationSet
from inference.evaluation.orders import EVALUATIONS
from inference.evaluation.parameter_sets.forms import initial_of, initial_values
from inference.evaluation.presentation import curves
from inference.evaluation.presentation import results as judged
from inference.evaluation.presentation.tiles import conditions, left_out, tiles
from inference.kit.contracts.served_task import Pages
from inference.kit.task_kinds import TASKS
from inference.registry import training_data
from training.runs.submit_views import next_name
from workers.images import forms as image_forms
from workers.jobs.resource_request import Resources
from workers.scheduling import preview

PER_PAGE = 12


@needs(Action.EVALUATIONS_VIEW)
def evaluation_list(request: SignedInRequest) -> HttpResponse:
    """Evaluations the user may see; `?q=`, `?state=`, `?mine=1`, `?ordering=`. htmx gets the table alone."""
    state, terms = request.GET.get("state", ""), request.GET.get("q", "")
    rows = Evaluation.objects.visible_to(request.user).for_list().in_state(state).named_like(terms)
    if request.GET.get("mine") == "1":
        rows = rows.filter(job__owner=request.user)
    page = EVALUATIONS.page(request, rows)
    alive = any(not evaluation.job.is_final for evaluation in page)
    context = {"page": page, "states": GROUP_LABELS.items(), "refresh": alive}
    template = "inference/_evaluation_table.html" if request.htmx else "inference/evaluation_list.html"
    return render(request, template, context)


@needs(Action.EVALUATIONS_SUBMIT)
def evaluation_new(request: SignedInRequest) -> HttpResponse:
    """The form of an evaluation; `?model_version=`, `?version=`, `?set=` and `?evaluation=` fill in what is known.

    Sent with "import", it comes back with the values of the parameter set that was chosen.
    """
    initial = {name: request.GET[name] for name in ("model_version", "version", "split") if name in request.GET}
    imports = "import" in request.POST
    if imports:
        initial = {name: request.POST[name] for name in EvaluationForm.base_fields if name in request.POST}
    chosen = _set(request, request.POST.get("parameter_set") or request.GET.get("set", ""))
    initial |= _begun_again(request) | (
        _set_values(request, chosen) if chosen and (imports or not request.POST) else {}
    )
    sent = request.POST if request.POST and not imports else None
    form = EvaluationForm(sent, request.FILES or None, user=request.user, initial=initial)
    form.saved_code = chosen.code if chosen else None
    if form.is_bound:
        with errors_shown_on(form):
            form.take_code()
    if form.is_valid():
        with errors_shown_on(form):
            evaluation = evaluations.submit(user=request.user, **form.submission())
            return redirect("inference:evaluation-detail", evaluation.pk)
    else:
        check_valid_fields(form, evaluations.check)
    context = {
        "form": form,
        "advanced": [form[name] for name in form.ADVANCED],
        "list_url": reverse("inference:evaluation-list"),
        "fit_url": reverse("inference:evaluation-fit"),
    }
    return render(request, "inference/evaluation_new.html", context, status=422 if form.errors else 200)


def _set(request: SignedInRequest, number: str) -> EvaluationSet | None:
    """Return a parameter set that this user may use."""
    rows = EvaluationSet.objects.usable_by(request.user).for_list()
    row: EvaluationSet | None = rows.filter(pk=ids.number(number) or 0).first()
    return row


def _begun_again(request: SignedInRequest) -> dict[str, Any]:
    """Initial values of an evaluation to run again, with the same model where it is still there."""
    number = ids.number(request.GET.get("evaluation", ""))
    if request.method != "GET" or not number:
        return {}
    row = _visible(request, number)
    return initial_values(saved_parameters.from_evaluation(row)) | {
        "model_version": row.model_version_id,
        "name": next_name(row.job.name),
    }


def _set_values(request: SignedInRequest, row: EvaluationSet) -> dict[str, Any]:
    """Return the initial values of a parameter set; its data only if the user may use it."""
    values = initial_of(row, request.user) | {
        "parameter_set": row.pk,
        "version": saved_parameters.usable_version(row, request.user),
    }
    return {name: value for name, value in values.items() if value not in (None, "") or name == "split"}


@require_POST
@needs(Action.EVALUATIONS_SUBMIT)
def evaluation_fit(request: SignedInRequest) -> HttpResponse:
    """The panel in the form: whether it would start now. Incomplete forms are fine."""
    form = EvaluationForm(request.POST, user=request.user)
    form.is_valid()
    resources: Resources = {"cpus": evaluations.DEFAULT_CPUS, **image_forms.resources_of(form)}
    verdict = preview.preview_request(request.user, resources, kind=evaluations.KIND, unclear=form.unclear())
    context = {"verdict": verdict, "image_fit": image_forms.fit_words(form)} | _measured_on(request, form)
    return render(request, "inference/_evaluation_fit.html", context)


def _measured_on(request: SignedInRequest, form: EvaluationForm) -> dict[str, Any]:
    """Return the split to evaluate on, and whether the model was trained on it, once model and data are chosen."""
    values = form.cleaned_data
    model, version, split = values.get("model_version"), values.get("version"), values.get("split", "")
    if model is None or version is None:
        return {}
    if split == training_data.AUTO:
        split = evaluations.best_split(request.user, model, version, is_scripted=bool(values.get("start_file")))
    repeats = training_data.repeats(model, version, split, user=request.user)
    return {"measured_on": SPLIT_LABELS.get(split, split), "repeats": repeats}


@needs(Action.EVALUATIONS_VIEW)
def evaluation_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """Figures, curves, confusion matrix, worst images. htmx polls the head until the job is over."""
    evaluation = _visible(request, pk)
    if request.htmx:
        if evaluation.job.is_final:
            return HttpResponse(headers={"HX-Refresh": "true"})
        return render(request, "inference/_evaluation_head.html", {"evaluation": evaluation})
    content = results.load(evaluation)
    context = {
        "evaluation": evaluation,
        "found": content,
        "tiles": tiles(evaluation.task, content) if content and not evaluation.is_scripted else [],
        "conditions": conditions(evaluation, (content or {}).get("summary") or {}),
        "left_out": "" if evaluation.is_scripted else left_out(evaluation.task, content or {}),
        "unanswered": curves.unanswered(content or {}),
        "pages": pages_of(evaluation),
        "mistakes": judged.mistakes_of(content or {}),
        "robustness": judged.robustness_of(content or {}, evaluation.task),
        "shown": _for_script(content) if content else None,
        "verdicts": promotion.verdicts_on(evaluation),
        "script": telling_of_script.facts(evaluation) if evaluation.is_scripted else None,
        "may_control": request.user.can(Action.EVALUATIONS_SUBMIT) and _own(request, evaluation),
    }
    return render(request, "inference/evaluation_detail.html", context)


def pages_of(evaluation: Evaluation) -> Pages | None:
    """Return what its task shows; None for a task that no longer exists."""
    task = TASKS.get(evaluation.task)
    return task.pages if task else None


def _for_script(content: dict[str, Any]) -> dict[str, Any]:
    """Return the data that evaluation.js draws."""
    names = ("task", "summary", "thresholds", "classes", "curves", "confusion")
    return {name: content[name] for name in names if name in content} | {"means": curves.means(content)}


@needs(Action.EVALUATIONS_VIEW)
def evaluation_images(request: SignedInRequest, pk: int) -> HttpResponse:
    """A page of the gallery: worst first, or those behind a cell of the confusion matrix (`?cell=0,2`).

    `?cell=0,` are those of its row, `?cell=,2` of its column.
    """
    results.check_predictions(evaluation := _visible(request, pk))
    cell, begin = request.GET.get("cell", ""), request.GET.get("begin", "0")
    mistake = request.GET.get("mistake", "")
    error_datasets.check_kind(mistake)
    at = min(ids.number(begin) or 0, 10**8)
    images, more = results.images(evaluation, cell=cell, mistake=mistake, begin=at, count=PER_PAGE)
    content = results.load(evaluation) or {}
    context = {
        "evaluation": evaluation,
        "pages": pages_of(evaluation),
        "images": images,
        "cell": cell,
        "mistake": mistake,
        "mistake_words": judged.MISTAKE_LABELS.get(mistake),
        "name": error_datasets.name_for(evaluation, request.user) if (cell or mistake) and at == 0 else "",
        "said": _cell_words(content, cell),
        "next": at + PER_PAGE if more else None,
        "begin": at,
        "names": {c["id"]: c["name"] for c in content.get("classes", [])},
        "threshold": content.get("summary", {}).get("threshold", 0),
        "shows_images": evaluation.version_id is not None,
    }
    return render(request, "inference/_evaluation_images.html", context)


def _cell_words(content: dict[str, Any], cell: str) -> tuple[str | None, str | None] | None:
    """Return the names of ground truth and prediction of a cell; an empty name is background, None any class."""
    labels = content.get("confusion", {}).get("labels", [])
    parts = cell.split(",")
    indices = [ids.number(part) for part in parts]
    if len(parts) != 2 or any(
        part and (index is None or index >= len(labels)) for part, index in zip(parts, indices, strict=True)
    ):
        return None
    truth, answer = (None if index is None else labels[index] for index in indices)
    return None if truth is None and answer is None else (truth, answer)


@needs(Action.EVALUATIONS_VIEW)
def evaluation_image(request: SignedInRequest, pk: int, path: str) -> HttpResponseBase:
    """One evaluated image, for those who may see both the evaluation and the dataset."""
    evaluation = _visible(request, pk)
    version = DatasetVersion.objects.visible_to(request.user).filter(pk=evaluation.version_id or 0).first()
    if version is None:
        raise Http404
    folder = getattr(version, "images_path", version.path / "images")
    try:
        descriptor = open_beneath(folder, path)
    except (OSError, OutsideRoot):
        raise Http404 from None
    response = send_file(request, descriptor, PurePosixPath(path).name, inline=True)
    response["Cache-Control"] = "private, max-age=3600"
    return response


@require_POST
@needs(Action.EVALUATIONS_SUBMIT)
def evaluation_stop(request: SignedInRequest, pk: int) -> HttpResponse:
    """Request a stop."""
    rows = Evaluation.objects.editable_by(request.user).select_related("job")
    evaluations.stop(evaluation=get_object_or_404(rows, pk=pk), by=request.user)
    return redirect("inference:evaluation-detail", pk)


@needs(Action.EVALUATIONS_VIEW)
def evaluation_download(request: SignedInRequest, pk: int) -> HttpResponseBase:
    """Figures and stored predictions as one zip."""
    evaluation = _visible(request, pk)
    files = results.downloads(evaluation)
    if not files:
        raise Http404
    return send_zip(request, files, f"{evaluation.job.name}.zip")


def _visible(request: SignedInRequest, pk: int) -> Evaluation:
    evaluation: Evaluation = get_object_or_404(Evaluation.objects.visible_to(request.user).for_list(), pk=pk)
    return evaluation


def _own(request: SignedInRequest, evaluation: Evaluation) -> bool:
    return bool(Evaluation.objects.editable_by(request.user).filter(pk=evaluation.pk).exists())
