"""Pages of studies: the list, one study, its actions. The form of a new one is in `starting`."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.errors import Invalid
from aiplatform.lib.ordering import ListPage
from aiplatform.objects import bulk
from aiplatform.objects.pages import ObjectPages, action
from aiplatform.objects.tables import Column, MainColumn, Table
from training.programs.pairs import read_pairs
from training.studies import actions, budget, objectives, presentation
from training.studies.filters import StudyFilters
from training.studies.models import Study, Trial
from training.studies.sorting import heads, ordered


class StudyPages(ObjectPages[Study]):
    """Pages of studies; `starting` has the form of a new one."""

    model, filters = Study, StudyFilters
    namespace = "studies"
    view_permission, change_permission = Action.TRAINING_VIEW, Action.TRAINING_SUBMIT
    needs = {"delete": Action.TRAINING_CONTROL}
    table = Table(
        MainColumn(_("Name"), "row.name", sort="name", below="row.description"),
        Column(_("State"), "{% state_chip row.state row.get_state_display %}", sort="state"),
        Column(_("Dataset"), template="studies/_dataset_cell.html", sort="dataset"),
        Column(_("Goal"), template="studies/_goal_cell.html"),
        Column(_("Best value"), template="studies/_best_cell.html", kind="num", css="nowrap"),
        Column(_("Trials"), "{{ row.made }} / {{ row.max_trials }}", kind="num", css="nowrap"),
        Column(_("Owner"), "row.owner.get_full_name", sort="owner"),
        Column(_("Created"), "row.created_at|ago", sort="created", kind="time"),
        anchor="study",
        bulk=(
            bulk.stop(
                "/api/v1/studies/0/stop/",
                _("Running trials are stopped; results so far are kept."),
                when="not row.is_over",
                owned=bulk.OWNED,
                needs=Action.TRAINING_CONTROL,
            ),
        ),
    )
    region, art, layout = "studies", "sliders", "wide"
    title, lead = _("Hyperparameter search"), _("Series of training jobs that find good parameters.")
    filter_label, no_match_text = _("Filter studies"), _("No study matches this filter.")
    empty_text = _("No studies yet. Define parameter ranges, and a series of short trainings finds good values.")
    new_title, deleted_text = _("New hyperparameter search"), _("Study %(name)s deleted.")
    detail_template, live_template = "studies/detail.html", "studies/_now.html"

    def prepare(self, request: SignedInRequest, rows: ListPage) -> dict[str, Any]:
        is_live = any(row.state == Study.State.RUNNING for row in rows)
        best_values = budget.best_values(rows)
        for row in rows:
            row.best_value = best_values.get(row.pk)
        return {"refresh_s": request.user.refresh_s} if is_live else {}

    def details(self, request: SignedInRequest, row: Study, is_own: bool) -> dict[str, Any]:
        """The study with its trials, which `?ordering=` sorts."""
        trials = list(row.trials.with_jobs().order_by("number"))
        best, trial_rows = budget.best_of(row, trials), presentation.trial_rows(row, trials)
        for trial_row in trial_rows:
            trial_row["cells"] = [trial_row["params"].get(dimension["name"]) for dimension in row.space]
        ordering = request.GET.get("ordering", "")
        return {
            "study": row,
            "goals": objectives.of_rows(row.objectives),
            "ranges": presentation.ranges(row),
            "fixed": presentation.fixed(row),
            "preset_title": presentation.preset_title(row),
            "rows": ordered(trial_rows, ordering),
            "heads": heads(row, ordering),
            "best": best,
            "counts": presentation.state_counts(trials),
            "made": len(trials),
            "most": budget.most(row),
            "used_s": 3600 * budget.hours(row),
            "limit_s": 3600 * row.hours_limit if row.hours_limit else None,
            "is_live": row.state == Study.State.RUNNING or any(trial.state == Trial.State.RUNNING for trial in trials),
            "may_control": is_own and request.user.can(Action.TRAINING_CONTROL),
            "data": {
                "trials": reverse("api-studies-trials", args=[row.pk]),
                "curves": reverse("api-studies-curves", args=[row.pk]),
                "importance": reverse("api-studies-importance", args=[row.pk]),
                "objectives": row.objectives,
                "space": row.space,
            },
        }

    def remove(self, request: SignedInRequest, row: Study) -> None:
        actions.delete(row)

    @action(Action.TRAINING_CONTROL)
    def pause(self, request: SignedInRequest, row: Study) -> None:
        """Start no new trials."""
        actions.pause(row, by=request.user)

    @action(Action.TRAINING_CONTROL)
    def resume(self, request: SignedInRequest, row: Study) -> None:
        """Continue after a pause or the end."""
        actions.resume(row, by=request.user)

    @action(Action.TRAINING_CONTROL)
    def stop(self, request: SignedInRequest, row: Study) -> None:
        """Stop the study with its trials."""
        actions.stop(row, by=request.user)

    @action()
    def enqueue(self, request: SignedInRequest, row: Study) -> None:
        """Try parameters next: one `name = value` a line."""
        actions.put_next(row, _pairs(request))
        messages.info(request, _("These trials run next."))

    @action()
    def best(self, request: SignedInRequest, row: Study) -> HttpResponse:
        """Train with the best parameters again; `params` are lines `name = value` that replace the study's own."""
        training = actions.train_best(row, by=request.user, params=_pairs(request))
        return redirect("training:job-detail", training.pk)

    @action()
    def limits(self, request: SignedInRequest, row: Study) -> None:
        """Change how many trials there may be, in all and at once."""
        actions.change_counts(row, request.POST.get("max_trials", ""), request.POST.get("at_once", ""))


def _pairs(request: SignedInRequest) -> dict[str, Any]:
    """The lines of the field `params`.

    Raises:
        Invalid: a line that is no pair.
    """
    try:
        return read_pairs(request.POST.get("params", "")[:20_000])
    except ValidationError as exc:
        raise Invalid(" ".join(exc.messages), field="params") from None
