"""Pages of predictions."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib import ids
from aiplatform.lib.downloads import send_file
from aiplatform.lib.errors import DomainError
from aiplatform.lib.files import open_beneath
from aiplatform.lib.pages import errors_shown_on
from aiplatform.objects import bulk
from aiplatform.objects.pages import POST, page
from aiplatform.objects.tables import Column, Table
from datasets.services import server_paths
from inference.batch import drafts, exports, predictions, presentation, results
from inference.batch.filters import PredictionFilters
from inference.batch.forms import DraftForm, PredictionForm
from inference.batch.models import Prediction
from inference.evaluation.jobs.pages import CREATED, MODEL, NAME, OWNER, STATE, ModelJobPages
from inference.evaluation.models import SPLIT_LABELS


class PredictionPages(ModelJobPages[Prediction]):
    """The pages of batch predictions."""

    model, filters, form_class = Prediction, PredictionFilters, PredictionForm
    basename, path = "prediction", "predictions/"
    view_permission, change_permission = Action.EVALUATIONS_VIEW, Action.EVALUATIONS_SUBMIT
    submit, check = staticmethod(predictions.submit), staticmethod(predictions.check)
    prefilled = ("model_version", "version", "split")
    source = Column(_("Images"), "row.source_label", sort="source", css="wrap-any")
    answered = Column(_("Answered"), template="inference/_prediction_count.html", kind="num")
    stop_text = _("Predictions so far are kept.")
    table = Table(
        NAME, STATE, source, MODEL, answered, OWNER, CREATED,
        bulk=(bulk.stop("/api/v1/predictions/0/stop/", stop_text),), row_name="row.job.name",
    )  # fmt: skip
    region, art, title = "predictions", "predict", _("Batch predictions")
    lead = _("Runs a model on all images of a dataset or a folder; download the predictions.")
    filter_label, no_match_text = _("Filter batch predictions"), _("No batch prediction matches.")
    empty_text = _("No batch predictions yet. Choose a model and images, and download the predictions.")
    new_title, empty_action = _("New batch prediction"), _("New batch prediction")
    form_lead = ""
    detail_template, live_template = "inference/prediction_detail.html", "inference/_prediction_answers.html"

    def details(self, request: SignedInRequest, row: Prediction, is_own: bool) -> dict[str, Any]:
        """Progress, images with their predictions, downloads."""
        may_extend = drafts.may_extend(row, request.user)
        may_draft = may_extend or request.user.can(Action.DATASETS_CREATE)
        name = "" if may_extend else drafts.name_for(row, request.user)
        return {
            "can_draft": row.job.is_final and may_draft and drafts.can_draft(row),
            "draft_form": DraftForm(may_extend=may_extend, initial={"name": name}),
            "split_word": SPLIT_LABELS.get(row.split, row.split),
            "has_places": exports.has_places(row),
            "made": row.made.seen_by(request.user),
            **presentation.build_context(row),
        }

    @page()
    def images(self, request: SignedInRequest, row: Prediction) -> HttpResponse:
        """More images of the gallery, starting at `?begin=`."""
        begin = min(ids.number(request.GET.get("begin", "")) or 0, 10**8)
        return self.render(request, "inference/_prediction_images.html", {"row": row, **presentation.page(row, begin)})

    @page(path="<int:pk>/images/<int:position>/")
    def image(self, request: SignedInRequest, row: Prediction, position: int) -> HttpResponseBase:
        """One processed image, for users who may see both the prediction and the images."""
        path = _path_of(row, position)
        try:
            root = drafts.root_of(row, request.user)
            if row.folder:
                server_paths.require_files(root, [path], by=request.user)
            descriptor = open_beneath(root, path)
        except (OSError, DomainError):
            raise Http404 from None
        response = send_file(request, descriptor, PurePosixPath(path).name, inline=True)
        response["Cache-Control"] = "private, max-age=3600"
        return response

    @page(path="<int:pk>/download/<slug:form>/")
    def download(self, request: SignedInRequest, row: Prediction, form: str) -> HttpResponseBase:
        """All predictions as CSV, COCO or JSON lines."""
        if form not in exports.FORMS:
            raise Http404
        return exports.send(request, row, form)

    @page(Action.EVALUATIONS_VIEW, methods=POST)
    def version(self, request: SignedInRequest, row: Prediction) -> HttpResponse:
        """Create a dataset version whose annotations are the predictions."""
        form = DraftForm(request.POST, may_extend=drafts.may_extend(row, request.user))
        if form.is_valid():
            with errors_shown_on(form):
                made = drafts.make(row, by=request.user, **form.cleaned_data)
                return redirect("datasets:detail", made.dataset_id)
        return self.render_detail(request, row, 422, draft_form=form)


def _path_of(prediction: Prediction, position: int) -> str:
    """Return the path of an image; the output of the program counts only if the version has the image."""
    data, path = prediction.data, ""
    if prediction.is_listed:
        path = results.listed_path(prediction, position)
    elif data is not None:
        line = next(results.lines(prediction, begin=position), None)
        if line and line["n"] == position and data.assets.filter(path=line["path"]).exists():
            path = line["path"]
    if not path:
        raise Http404
    return path
