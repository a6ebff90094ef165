"""Steps in which annotations come in: a model's answers for open images, or people who work on them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib import ids
from aiplatform.lib.errors import Invalid
from annotation.models import AnnotationProject, AnnotationSet, Export, ImageTask, Review
from annotation.services import exports, work
from datasets.models import Import
from inference.batch import completion, predictions
from inference.batch.models import Prediction
from inference.pipelines.advance import STEP_ITEM
from inference.pipelines.kinds import Begun, Call, Done, Param, Port, StepFailed, StepKind, completed
from inference.pipelines.models import PipelineRun, StepRun
from inference.pipelines.steps import rows, versions
from inference.pipelines.steps.predicting import score_of
from inference.pipelines.steps.training import figures
from inference.pipelines.steps.versions import DATA, FIGURES, INTO
from workers.core.clock import now
from workers.jobs.resource_request import Resources

States = ImageTask.State


class AnnotateStep(StepKind):
    """A model annotates the images that have no annotations."""

    name = "annotate"
    label = gettext_lazy("Annotate with a model")
    description = gettext_lazy("Runs a model on images without annotations; other images do not change.")
    group = "people"
    icon = "predict"
    computes = True
    needs = Action.EVALUATIONS_SUBMIT
    inputs = (DATA, Port("model", gettext_lazy("Model"), "model"))
    outputs = (DATA, FIGURES)
    params = (
        Param("min_score", gettext_lazy("Minimum confidence"), form="number", default=None, low=0, high=1,
              help=gettext_lazy(
            "Predictions below are ignored. Default: the best threshold of the last evaluation.")),
        INTO,
        Param("gpus", gettext_lazy("GPUs"), form="whole", default=0, low=0, high=1),
        Param("cpus", gettext_lazy("Cores"), form="number", default=None, low=0.1, high=1024),
    )  # fmt: skip

    def check(self, params: Mapping[str, Any], user: User) -> None:
        versions.check_into(params, user)

    def content(self, call: Call) -> Mapping[str, Any] | None:
        """The dataset that gets the version, and the score where it is left to the newest evaluation."""
        into = call.params["into"] or rows.dataset_version(call.only("data"), call.user).dataset_id
        return {"into": into, "score": score_of(call)}

    def start(self, call: Call) -> Begun:
        self.check(call.params, call.user)
        call.user.require(Action.DATASETS_EDIT)
        version = rows.dataset_version(call.only("data"), call.user)
        model = rows.model_version(call.only("model"), call.user)
        completion.check(model, version)
        into = versions.target(call.params["into"], call.user, version.dataset)
        paths = completion.open_images(version)
        if not paths:
            return Begun(done=Done(versions.outputs_of(version, call.row, answered=0)))
        resources: Resources = {"gpus_per_node": call.params["gpus"]}
        if call.params["cpus"] is not None:
            resources["cpus"] = call.params["cpus"]
        prediction = predictions.submit(
            user=call.user, model_version=model, version=version, name=call.name,
            listed=None if len(paths) == version.image_count else paths,
            score_threshold=call.params["min_score"], **resources,
        )  # fmt: skip
        request = {
            "prediction": prediction.pk, "data": version.pk, "label": str(version), "into": into.pk,
            "min_score": call.params["min_score"] or 0.0, "answered": len(paths),
        }  # fmt: skip
        return Begun(job=prediction.job, stored={"asked": request})

    def poll(self, row: StepRun) -> Done | None:
        if "import" in row.kept:
            return versions.made_of(row, answered=row.kept["asked"]["answered"])
        completed(row)
        versions.start_when_free(row, _drafted, row.kept["asked"])
        return None

    def stop(self, row: StepRun) -> None:
        super().stop(row)
        versions.stop_import(row.kept.get("import"))


def _drafted(request: Mapping[str, Any], user: User) -> Import:
    """Queue the version with the predictions."""
    prediction = Prediction.objects.filter(pk=request["prediction"]).select_related("job").first()
    dataset = rows.dataset_by_number(request["into"], user)
    if prediction is None:
        raise StepFailed(_("The job was deleted."))
    version = versions.version_of(request, user)
    return completion.start(
        prediction=prediction, version=version, dataset=dataset, min_score=request["min_score"], by=user
    )


class PeopleStep(StepKind):
    """Waits until people have annotated enough, and takes what they made as a version."""

    name = "people"
    label = gettext_lazy("Manual annotation")
    description = gettext_lazy("Waits until enough images of a project are annotated, and creates a version from them.")
    group = "people"
    icon = "annotation"
    acts = True  # people go on meanwhile
    needs = Action.ANNOTATION_MANAGE
    inputs = (Port("after", gettext_lazy("After"), "any", optional=True, many=True),)
    outputs = (
        DATA,
        FIGURES,
        Port("enough", gettext_lazy("Sufficient"), "signal"),
        Port("too_few", gettext_lazy("Too few"), "signal"),
    )
    params = (
        Param("project", gettext_lazy("Project"), required=True, help=gettext_lazy("The name or number.")),
        Param("dataset", gettext_lazy("Dataset"), default="", help=gettext_lazy(
            "Dataset of the project. Default: the newest.")),
        Param("until", gettext_lazy("Wait for"), form="choice", default="new", choices=(
            ("new", gettext_lazy("New images")), ("all", gettext_lazy("All images")))),
        Param("at_least", gettext_lazy("New images"), form="whole", default=1, low=0, high=1_000_000, help=gettext_lazy(
            "Since the last successful run of this pipeline.")),
        Param("count", gettext_lazy("Value"), form="choice", default="accepted", choices=(
            ("accepted", gettext_lazy("Accepted images")),
            ("submitted", gettext_lazy("Submitted and accepted images")))),
        Param("since", gettext_lazy("New since"), default="", help=gettext_lazy(
            "A version of the data, such as 3, instead of the last run.")),
        Param("hours", gettext_lazy("Maximum hours to wait"), form="number", default=None, low=0, high=8760,
              help=gettext_lazy("Leave empty for no time limit. 0: checks once.")),
        Param("at_expiry", gettext_lazy("After the time limit"), form="choice", default="fail", choices=(
            ("fail", gettext_lazy("The step fails")), ("too_few", gettext_lazy("Result “too few”, without data")),
            ("go_on", gettext_lazy("Continue with the available images")))),
    )  # fmt: skip

    def check(self, params: Mapping[str, Any], user: User) -> None:
        if params.get("project"):
            annotation_set = set_named(params["project"], params.get("dataset") or "", user)
            if params.get("since"):
                rows.version_of(annotation_set.source.dataset, params["since"])

    def start(self, call: Call) -> Begun:
        params = call.params
        annotation_set = set_named(params["project"], params["dataset"], call.user)
        since = self._since(call, annotation_set)
        hours = params["hours"]
        stored = {
            "set": annotation_set.pk, "until": params["until"], "at_least": params["at_least"],
            "count": params["count"],
            "since": since.isoformat() if since else "", "at_expiry": params["at_expiry"],
            "expires": "" if hours is None else (now() + timedelta(hours=hours)).isoformat(),
        }  # fmt: skip
        return Begun(stored=stored, look_again=versions.RETRY_DELAY)

    def _since(self, call: Call, annotation_set: AnnotationSet) -> datetime | None:
        """Return the time from which on images are new; None: all are."""
        if call.params["since"]:
            return rows.version_of(annotation_set.source.dataset, call.params["since"]).created_at
        earlier = StepRun.objects.filter(
            run__pipeline=call.run.pipeline_id, run__state=PipelineRun.State.OK, step=call.row.step, item=STEP_ITEM,
            state=StepRun.State.OK, answer="enough", kept__set=annotation_set.pk,
        )  # fmt: skip
        last = earlier.order_by("-pk").first()
        return parse_datetime(str(last.kept.get("counted", ""))) if last else None

    def poll(self, row: StepRun) -> Done | None:
        stored = row.kept
        annotation_set = AnnotationSet.objects.editable_by(row.run.owner).filter(pk=stored["set"]).first()
        if annotation_set is None:
            raise StepFailed(_("The annotation project was deleted or is not accessible to you any more."))
        if "export" in stored:
            return self._made(row)
        new = new_images(annotation_set, stored["count"], parse_datetime(stored["since"]) if stored["since"] else None)
        if not self._is_enough(annotation_set, stored, new):
            expires = parse_datetime(stored["expires"]) if stored["expires"] else None
            if expires is None or now() < expires:
                return None
            if stored["at_expiry"] == "too_few":
                return Done({"figures": figures({"new_images": new}, row)}, "too_few")
            if stored["at_expiry"] == "fail":
                message = _("%(new)s of %(wanted)s new images were annotated in time.")
                wanted = (
                    stored["at_least"]
                    if stored["until"] == "new"
                    else work.progress([annotation_set])[annotation_set.pk].total
                )
                raise StepFailed(message % {"new": new, "wanted": wanted})
        counted = now()
        try:
            export = exports.start(annotation_set=annotation_set, by=row.run.owner)
        except (exports.AlreadyConverting, exports.NotFilled):
            return None  # it is looked at again
        fresh = {**stored, "export": export.pk, "new": new, "counted": counted.isoformat()}
        StepRun.objects.filter(pk=row.pk).update(kept=fresh)
        return None

    def _is_enough(self, annotation_set: AnnotationSet, stored: Mapping[str, Any], new: int) -> bool:
        if stored["until"] == "new":
            return new >= stored["at_least"]
        progress = work.progress([annotation_set])[annotation_set.pk]
        done = progress.accepted if stored["count"] == "accepted" else progress.done
        return annotation_set.filled and done == progress.total

    def _made(self, row: StepRun) -> Done | None:
        export = Export.objects.select_related("version__dataset").filter(pk=row.kept["export"]).first()
        if export is None:
            raise StepFailed(_("The conversion was deleted."))
        if export.state == Export.State.FAILED:
            raise StepFailed(export.detail or _("The conversion failed."))
        if export.is_live or export.version is None:
            return None
        return Done(versions.outputs_of(export.version, row, new_images=row.kept["new"]), "enough")


def set_named(project: str, name: str, user: User) -> AnnotationSet:
    """Return a dataset of an annotation project that this user may convert.

    Args:
        project: name or number of the project; one's own comes first where several people have the name.
        name: of the dataset there; "": the newest.

    Raises:
        Invalid: there is none.
    """
    editable = AnnotationProject.objects.editable_by(user)
    named = list(editable.filter(name=project).order_by("pk")[:50])
    chosen = ([row for row in named if row.owner_id == user.pk] or named)[:1]
    if not chosen and (number := ids.number(project)):
        chosen = list(editable.filter(pk=number))
    if not chosen:
        message = _("Annotation project “%(name)s” not found, or you do not manage it.")
        raise Invalid(message % {"name": project[:80]}, field="project")
    sets = AnnotationSet.objects.filter(project=chosen[0]).select_related("source__dataset")
    annotation_set: AnnotationSet | None = (sets.filter(name=name) if name else sets).order_by("-pk").first()
    if annotation_set is None:
        names = ", ".join(sets.values_list("name", flat=True)[:10]) or _("none")
        facts = {"project": chosen[0], "name": name[:80], "known": names}
        raise Invalid(
            _("%(project)s has no dataset “%(name)s”. Available datasets: %(known)s.") % facts, field="dataset"
        )
    return annotation_set


def new_images(annotation_set: AnnotationSet, count: str, since: datetime | None) -> int:
    """How many images of a set are done and were not at a moment.

    Args:
        count: "accepted", or "submitted" for those that wait for a review as well.
    """
    states = [States.ACCEPTED] if count == "accepted" else [States.ACCEPTED, States.SUBMITTED]
    done = ImageTask.objects.filter(set=annotation_set, state__in=states)
    if since is None:
        return done.count()
    judged = Review.objects.filter(task__set=annotation_set, verdict=Review.Verdict.ACCEPTED, at__gt=since)
    new = Q(state=States.ACCEPTED, pk__in=judged.values("task"))
    if count == "submitted":
        new |= Q(submitted_at__gt=since)
    return done.filter(new).count()
