"""Pages of predictions."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib import ids
from aiplatform.lib.downloads import send_file
from aiplatform.lib.errors import DomainError
from aiplatform.lib.files import open_beneath
from aiplatform.lib.pages import check_valid_fields, errors_shown_on, needs
from aiplatform.objects.tables import Column, Table
from datasets.services import server_paths
from inference.batch import drafts, exports, predictions, presentation, results
from inference.batch.filters import PredictionFilters
from inference.batch.forms import DraftForm, PredictionForm
from inference.batch.models import Prediction
from inference.evaluation import evaluations
from inference.evaluation.job_lists import CREATED, MODEL, NAME, OWNER, STATE, JobRowPages
from inference.evaluation.models import SPLIT_LABELS
from workers.jobs.resource_request import Resources
from workers.scheduling import preview


class PredictionPages(JobRowPages[Prediction]):
    """The list of batch predictions."""

    model, filters = Prediction, PredictionFilters
    basename, path, url_names = "prediction", "predictions/", {"detail": "prediction-detail"}
    view_permission, change_permission = Action.EVALUATIONS_VIEW, Action.EVALUATIONS_SUBMIT
    source = Column(_("Images"), "row.source_label", sort="source", css="wrap-any")
    answered = Column(_("Answered"), template="inference/_prediction_count.html", kind="num")
    table = Table(NAME, STATE, source, MODEL, answered, OWNER, CREATED)
    region, title = "predictions", _("Batch predictions")
    lead = _("Runs a model on all images of a dataset or a folder; download the predictions.")
    filter_label, no_match_text = _("Filter batch predictions"), _("No batch prediction matches.")
    empty_text = _("No batch predictions yet. Choose a model and images, and download the predictions.")
    new_title, empty_action = _("New batch prediction"), _("New batch prediction")


@needs(Action.EVALUATIONS_SUBMIT)
def prediction_new(request: SignedInRequest) -> HttpResponse:
    """The form of a prediction; `?model_version=`, `?version=`, `?split=` fill in what is known."""
    initial = {name: request.GET[name] for name in ("model_version", "version", "split") if name in request.GET}
    form = PredictionForm(request.POST or None, request.FILES or None, user=request.user, initial=initial)
    if form.is_valid():
        with errors_shown_on(form):
            prediction = predictions.submit(user=request.user, **form.submission())
            return redirect("inference:prediction-detail", prediction.pk)
    else:
        check_valid_fields(form, predictions.check)
    context = {
        "form": form,
        "advanced": [form[name] for name in form.ADVANCED],
        "list_url": reverse("inference:prediction-list"),
        "fit_url": reverse("inference:prediction-fit"),
    }
    return render(request, "inference/prediction_new.html", context, status=422 if form.errors else 200)


@require_POST
@needs(Action.EVALUATIONS_SUBMIT)
def prediction_fit(request: SignedInRequest) -> HttpResponse:
    """The panel in the form: whether it would start now. Incomplete forms are fine."""
    form = PredictionForm(request.POST, user=request.user)
    form.is_valid()
    resources: Resources = {"cpus": evaluations.DEFAULT_CPUS, **form.resources()}
    verdict = preview.preview_request(request.user, resources, kind=predictions.KIND)
    return render(request, "workers/_fit.html", {"verdict": verdict})


@needs(Action.EVALUATIONS_VIEW)
def prediction_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """How far it is, pictures with their answers, downloads. htmx polls what changes until the job is over."""
    prediction = _visible(request, pk)
    if request.htmx and prediction.job.is_final:
        return HttpResponse(headers={"HX-Refresh": "true"})
    template = "inference/_prediction_answers.html" if request.htmx else "inference/prediction_detail.html"
    return render(request, template, _shown(request, prediction))


def _shown(request: SignedInRequest, prediction: Prediction, form: DraftForm | None = None) -> dict[str, Any]:
    own = Prediction.objects.editable_by(request.user).filter(pk=prediction.pk).exists()
    may_extend = drafts.may_extend(prediction, request.user)
    may_draft = may_extend or request.user.can(Action.DATASETS_CREATE)
    if form is None:
        name = "" if may_extend else drafts.name_for(prediction, request.user)
        form = DraftForm(may_extend=may_extend, initial={"name": name})
    return {
        "prediction": prediction,
        "may_control": own and request.user.can(Action.EVALUATIONS_SUBMIT),
        "can_draft": prediction.job.is_final and may_draft and drafts.can_draft(prediction),
        "draft_form": form,
        "split_word": SPLIT_LABELS.get(prediction.split, prediction.split),
        "has_places": exports.has_places(prediction),
        "made": prediction.made.seen_by(request.user),
        **presentation.build_context(prediction),
    }


@needs(Action.EVALUATIONS_VIEW)
def prediction_images(request: SignedInRequest, pk: int) -> HttpResponse:
    """Further pictures of the gallery, those from `?begin=` on."""
    prediction = _visible(request, pk)
    begin = min(ids.number(request.GET.get("begin", "")) or 0, 10**8)
    context = {"prediction": prediction, **presentation.page(prediction, begin)}
    return render(request, "inference/_prediction_images.html", context)


@needs(Action.EVALUATIONS_VIEW)
def prediction_image(request: SignedInRequest, pk: int, place: int) -> HttpResponseBase:
    """One of the pictures that were answered, for those who may see both the prediction and the pictures."""
    prediction = _visible(request, pk)
    path = _path_of(prediction, place)
    try:
        root = drafts.root_of(prediction, request.user)
        if prediction.folder:
            server_paths.require_files(root, [path], by=request.user)
        descriptor = open_beneath(root, path)
    except (OSError, DomainError):
        raise Http404 from None
    response = send_file(request, descriptor, PurePosixPath(path).name, inline=True)
    response["Cache-Control"] = "private, max-age=3600"
    return response


def _path_of(prediction: Prediction, place: int) -> str:
    """Return the path of an image; the output of the program counts only if the version has the image."""
    data, path = prediction.data, ""
    if prediction.is_listed:
        path = results.listed_path(prediction, place)
    elif data is not None:
        line = next(results.lines(prediction, begin=place), None)
        if line and line["n"] == place and data.assets.filter(path=line["path"]).exists():
            path = line["path"]
    if not path:
        raise Http404
    return path


@needs(Action.EVALUATIONS_VIEW)
def prediction_download(request: SignedInRequest, pk: int, form: str) -> HttpResponseBase:
    """All answers as CSV, COCO or JSON lines."""
    if form not in exports.FORMS:
        raise Http404
    return exports.send(request, _visible(request, pk), form)


@require_POST
@needs(Action.EVALUATIONS_VIEW)
def prediction_version(request: SignedInRequest, pk: int) -> HttpResponse:
    """Make a dataset version whose annotations are the answers."""
    prediction = _visible(request, pk)
    form = DraftForm(request.POST, may_extend=drafts.may_extend(prediction, request.user))
    if form.is_valid():
        with errors_shown_on(form):
            made = drafts.make(prediction, by=request.user, **form.cleaned_data)
            return redirect("datasets:detail", made.dataset_id)
    return render(request, "inference/prediction_detail.html", _shown(request, prediction, form), status=422)


@require_POST
@needs(Action.EVALUATIONS_SUBMIT)
def prediction_stop(request: SignedInRequest, pk: int) -> HttpResponse:
    """Request a stop."""
    rows = Prediction.objects.editable_by(request.user).select_related("job")
    predictions.stop(prediction=get_object_or_404(rows, pk=pk), by=request.user)
    return redirect("inference:prediction-detail", pk)


def _visible(request: SignedInRequest, pk: int) -> Prediction:
    prediction: Prediction = get_object_or_404(Prediction.objects.visible_to(request.user).for_list(), pk=pk)
    return prediction
