"""Pages of evaluations."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib import ids
from aiplatform.lib.downloads import send_file
from aiplatform.lib.errors import DomainError
from aiplatform.lib.files import OutsideRoot, open_beneath
from aiplatform.lib.pages import errors_shown_on
from aiplatform.lib.zips import send_zip
from aiplatform.objects import bulk
from aiplatform.objects.pages import action, page
from aiplatform.objects.tables import Column, Table
from datasets.models import DatasetVersion
from inference.evaluation import calibration, error_datasets, evaluations, promotion, results, saved_parameters
from inference.evaluation.custom_scripts import presentation as script_facts
from inference.evaluation.filters import EvaluationFilters
from inference.evaluation.forms import EvaluationForm
from inference.evaluation.jobs.pages import CREATED, MODEL, OWNER, STATE, ModelJobPages
from inference.evaluation.models import SPLIT_LABELS, Evaluation, EvaluationSet
from inference.evaluation.parameter_sets.forms import initial_of, initial_values
from inference.evaluation.presentation import curves, report
from inference.evaluation.presentation import results as judged
from inference.evaluation.presentation.colors import class_legend, colors_of
from inference.evaluation.presentation.sections import THRESHOLD, tabs
from inference.evaluation.presentation.tiles import conditions, left_out, tiles
from inference.kit.contracts.served_task import Pages
from inference.kit.task_kinds import TASKS
from inference.registry import training_data
from training.runs.submit_views import next_name
from workers.images import forms as image_forms
from workers.jobs.resource_request import Resources

PER_PAGE = 12
#: Template: what evaluations have in common that can be compared, without spaces; see differences.select_evaluations.
SAME_DATA = "{{ row.task }}/{{ row.version_id|default:row.version_label|urlencode:'' }}/{{ row.split|urlencode:'' }}"


class EvaluationPages(ModelJobPages[Evaluation]):
    """The pages of evaluations; those of slices and comparisons are in modules of their own."""

    model, filters, form_class = Evaluation, EvaluationFilters, EvaluationForm
    basename, path = "evaluation", "evaluations/"
    view_permission, change_permission = Action.EVALUATIONS_VIEW, Action.EVALUATIONS_SUBMIT
    submit, check = staticmethod(evaluations.submit), staticmethod(evaluations.check)
    prefilled = ("model_version", "version", "split")
    name = Column(_("Name"), template="inference/_evaluation_name.html", sort="name", css="main-cell")
    dataset = Column(_("Dataset"), template="inference/_evaluation_data.html", sort="dataset")
    metric = Column(_("Metric"), template="inference/_evaluation_metric.html", sort="figure", kind="num", css="nowrap")
    stop_text = _("The run ends without metrics.")
    table = Table(
        name, STATE, MODEL, dataset, metric, OWNER, CREATED, row_name="row.job.name",
        bulk=(
            bulk.compare(
                "/evaluations/compare/", "evaluation", when="row.published_attempt",
                same=SAME_DATA,
                differ_text=_("Select evaluations of the same task, dataset version and split."),
            ),
            bulk.stop("/api/v1/evaluations/0/stop/", stop_text),
        ),
    )  # fmt: skip
    region, title = "evaluations", _("Evaluations")
    lead = _("Models evaluated on data they were not trained on, with the code that serves them.")
    filter_label, no_match_text = _("Filter evaluations"), _("No evaluation matches.")
    empty_text = _("No evaluations yet. An evaluation measures a model on a test split.")
    new_title, form_template = _("New evaluation"), "inference/evaluation_new.html"
    fit_template = "inference/_evaluation_fit.html"
    form_lead = _(
        "The model processes every image of the split, and all metrics come from its predictions. "
        "Alternatively a custom script evaluates it."
    )
    detail_template, live_template = "inference/evaluation_detail.html", "inference/_model_job_head.html"

    def form(self, request: SignedInRequest, row: Evaluation | None = None) -> EvaluationForm:
        """The form; `?set=` and `?evaluation=` fill in what is known.

        Sent with "import", it comes back with the values of the parameter set that was chosen.
        """
        imports = "import" in request.POST
        initial = self.initial(request)
        if imports:
            initial = {name: request.POST[name] for name in EvaluationForm.base_fields if name in request.POST}
        chosen = _parameter_set(request, request.POST.get("parameter_set") or request.GET.get("set", ""))
        initial |= self._repeated(request)
        if chosen and (imports or not request.POST):
            initial |= _set_values(request, chosen)
        sent = request.POST if request.POST and not imports else None
        form = EvaluationForm(sent, request.FILES or None, user=request.user, initial=initial)
        form.saved_code = chosen.code if chosen else None
        if form.is_bound:
            with errors_shown_on(form):
                form.take_code()
        return form

    def _repeated(self, request: SignedInRequest) -> dict[str, Any]:
        """Initial values of an evaluation to run again, with the same model where it is still there."""
        number = ids.number(request.GET.get("evaluation", ""))
        if request.method != "GET" or not number:
            return {}
        row = self.row(request, number)
        return initial_values(saved_parameters.from_evaluation(row)) | {
            "model_version": row.model_version_id,
            "name": next_name(row.job.name),
        }

    def resources(self, form: EvaluationForm) -> Resources:
        return image_forms.resources_of(form)

    def fit_context(self, request: SignedInRequest, form: EvaluationForm) -> dict[str, Any]:
        """On which nodes the image runs, and what the metrics are measured on."""
        return {"image_fit": image_forms.fit_words(form)} | _measured_on(request, form)

    def details(self, request: SignedInRequest, row: Evaluation, is_own: bool) -> dict[str, Any]:
        """Metrics, curves, confusion matrix, worst images."""
        preview = _preview(row)
        if request.htmx:
            return preview
        content = results.load(row)
        pages, mistakes = pages_of(row), judged.mistakes_of(content or {})
        robustness = judged.robustness_of(content or {}, row.task)
        return preview | {
            "evaluation": row,
            "found": content,
            "tiles": tiles(row.task, content) if content and not row.is_scripted else [],
            "conditions": conditions(row, (content or {}).get("summary") or {}),
            "left_out": "" if row.is_scripted else left_out(row.task, content or {}),
            "unanswered": curves.unanswered(content or {}),
            "task_pages": pages,
            "mistakes": mistakes,
            "robustness": robustness,
            "tabs": tabs(pages, has_errors=bool(mistakes), has_robustness=bool(robustness)) if pages else [],
            "has_threshold": pages is not None and THRESHOLD in pages.sections,
            "shown": _for_script(content) | {"colors": colors_of(row, content)} if content else None,
            "verdicts": promotion.verdicts_on(row),
            "script": script_facts.facts(row) if row.is_scripted else None,
        }

    @page()
    def images(self, request: SignedInRequest, row: Evaluation) -> HttpResponse:
        """A page of the gallery: worst first, or those behind a cell of the confusion matrix (`?cell=0,2`).

        `?cell=0,` are those of its row, `?cell=,2` of its column.
        """
        results.check_predictions(row)
        cell, mistake = request.GET.get("cell", ""), request.GET.get("mistake", "")
        error_datasets.check_kind(mistake)
        at = min(ids.number(request.GET.get("begin", "0")) or 0, 10**8)
        images, more = results.images(row, cell=cell, mistake=mistake, begin=at, count=PER_PAGE)
        content = results.load(row) or {}
        context = {
            "evaluation": row,
            "task_pages": pages_of(row),
            "images": images,
            "cell": cell,
            "mistake": mistake,
            "mistake_words": judged.MISTAKE_LABELS.get(mistake),
            "name": error_datasets.name_for(row, request.user) if (cell or mistake) and at == 0 else "",
            "said": _cell_words(content, cell),
            "next": at + PER_PAGE if more else None,
            "begin": at,
            "names": {c["id"]: c["name"] for c in content.get("classes", [])},
            "colors": colors_of(row, content),
            "class_legend": class_legend(row, content) if at == 0 else [],
            "threshold": content.get("summary", {}).get("threshold", 0),
            "shows_images": row.version_id is not None,
        }
        return render(request, "inference/_evaluation_images.html", context)

    @page(path="<int:pk>/image/<path:path>")
    def image(self, request: SignedInRequest, row: Evaluation, path: str) -> HttpResponseBase:
        """One evaluated image, for those who may see both the evaluation and the dataset."""
        version = DatasetVersion.objects.visible_to(request.user).filter(pk=row.version_id or 0).first()
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

    @page()
    def download(self, request: SignedInRequest, row: Evaluation) -> HttpResponseBase:
        """Metrics and stored predictions as one zip."""
        files = results.downloads(row)
        if not files:
            raise Http404
        return send_zip(request, files, f"{row.job.name}.zip")

    @page()
    def report(self, request: SignedInRequest, row: Evaluation) -> HttpResponse:
        """The report of an evaluation, to save."""
        return report.answer(row, request.user)

    @page()
    def calibration(self, request: SignedInRequest, row: Evaluation) -> HttpResponse:
        """Reliability of the scores, and thresholds by cost: `?wrong=` and `?missed=` are what each costs."""
        values = {name: request.GET.get(name, "1")[:20] for name in ("wrong", "missed")}
        context: dict[str, Any] = {"evaluation": row, "given": values}
        try:
            costs = {name: calibration.parse_number(text) for name, text in values.items()}
            context |= judged.calibration_context(row, **costs)
        except DomainError as refusal:
            context["refusals"] = refusal.every
            return render(request, "inference/_calibration.html", context, status=refusal.status)
        task = TASKS.get(row.task)
        context["chosen_by_callers"] = task is not None and task.pages.threshold
        context["may_choose"] = (
            context["chosen_by_callers"] and self.may(request, "threshold")
            and self.rows(request, "editable_by").filter(pk=row.pk).exists()
        )  # fmt: skip
        return render(request, "inference/_calibration.html", context)

    @action()
    def threshold(self, request: SignedInRequest, row: Evaluation) -> None:
        """Keep a threshold as the best score; "" goes back to the one with the best F1."""
        threshold = request.POST.get("threshold", "")
        calibration.choose(row, calibration.parse_number(threshold) if threshold else None)
        messages.info(request, gettext("Default threshold for endpoints with this version, unless a request sets one."))

    @action(Action.EVALUATIONS_VIEW, rows="visible_to")
    def annotate(self, request: SignedInRequest, row: Evaluation) -> HttpResponse:
        """Make a dataset of images with a mistake."""
        values = request.POST
        made = error_datasets.annotate(
            row, by=request.user, name=values.get("name", "").strip()[:100], mistake=values.get("mistake", ""),
            cell=values.get("cell", ""),
        )  # fmt: skip
        return redirect("datasets:import", made.pk, made.imports.latest("pk").pk)


def _preview(row: Evaluation) -> dict[str, Any]:
    """Return the gallery of the newest images of an evaluation that runs."""
    content = results.preview(row)
    if row.is_scripted or not content.get("images"):
        return {}
    return {
        "evaluation": row,
        "task_pages": pages_of(row),
        "images": content["images"][:PER_PAGE],
        "names": {entry["id"]: entry["name"] for entry in content["classes"]},
        "colors": colors_of(row, content),
        "threshold": content["summary"]["threshold"] or 0,
        "shows_images": row.version_id is not None,
    }


def _parameter_set(request: SignedInRequest, number: str) -> EvaluationSet | None:
    """Return a parameter set that this user may use."""
    rows = EvaluationSet.objects.usable_by(request.user).for_list()
    row: EvaluationSet | None = rows.filter(pk=ids.number(number) or 0).first()
    return row


def _set_values(request: SignedInRequest, row: EvaluationSet) -> dict[str, Any]:
    """Return the initial values of a parameter set; its data only if the user may use it."""
    values = initial_of(row, request.user) | {
        "parameter_set": row.pk,
        "version": saved_parameters.usable_version(row, request.user),
    }
    return {name: value for name, value in values.items() if value not in (None, "") or name == "split"}


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


def pages_of(evaluation: Evaluation) -> Pages | None:
    """Return what its task shows; None for a task that no longer exists."""
    task = TASKS.get(evaluation.task)
    return task.pages if task else None


def _for_script(content: dict[str, Any]) -> dict[str, Any]:
    """Return the data that evaluation.js draws."""
    names = ("task", "summary", "thresholds", "classes", "curves", "confusion")
    return {name: content[name] for name in names if name in content} | {"means": curves.means(content)}


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
