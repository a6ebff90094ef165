"""Steps that make dataset versions of others: chosen images, other splits, several put together.

Each is an import of the dataset that gets the version. While another import of it is open, the step waits for its end.
Where the run is cancelled the import is as well.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib import titles
from aiplatform.lib.errors import Invalid, Refusals
from datasets.models import Dataset, DatasetVersion, Import
from datasets.services import choosing, datasets, imports, merging, splits
from datasets.services.datasets import NAME_MAX
from datasets.services.splitting import Wish
from inference.pipelines.kinds import Begun, Call, Done, Param, Port, StepFailed, StepKind
from inference.pipelines.models import StepRun, reference
from inference.pipelines.steps import rows
from inference.pipelines.steps.training import figures

RETRY_DELAY = timedelta(seconds=2)
DATA = Port("data", gettext_lazy("Data"), "dataset")
FIGURES = Port("figures", gettext_lazy("Metrics"), "figures")
INTO = Param(
    "into",
    gettext_lazy("Into dataset"),
    default="",
    help=gettext_lazy(
        "Name of your dataset for the version; created if it does not exist. Leave empty for the same dataset."
    ),
)
INTO_OWN = Param("into", gettext_lazy("Into dataset"), default="", help=gettext_lazy(
    "Name of your dataset for the version; created if it does not exist. Leave empty to derive it from the "
    "data and this step."))  # fmt: skip


class MakesVersion(StepKind):
    """Common part: `build_request` describes the version as JSON, `start_import` creates it."""

    group = "data"
    needs = Action.DATASETS_EDIT
    inputs: tuple[Port, ...] = (DATA,)
    outputs = (DATA, FIGURES)

    def build_request(self, call: Call) -> dict[str, Any]:
        """Return all that `start_import` needs; raises for everything that can be refused.

        Raises:
            DomainError.
        """
        raise NotImplementedError(f"The step kind {self.name!r} does not say what it asks for.")

    def start_import(self, request: Mapping[str, Any], user: User) -> Import:
        """Queue the version.

        Raises:
            NotNow: another import of the dataset is open.
            DomainError: it cannot be made.
        """
        raise NotImplementedError(f"The step kind {self.name!r} does not say how its version is made.")

    def content(self, call: Call) -> Mapping[str, Any] | None:
        """The dataset that gets the version: an equal version of another one is another result."""
        into = self.build_request(call)["into"]
        return {"into": into or rows.dataset_version(call.only("data"), call.user).dataset_id}

    def start(self, call: Call) -> Begun:
        stored = {"asked": self.build_request(call)}
        try:
            row = self.start_import(stored["asked"], call.user)
        except imports.NotNow:
            return Begun(stored=stored, look_again=RETRY_DELAY)
        return Begun(stored=stored | {"import": row.pk}, look_again=RETRY_DELAY)

    def poll(self, row: StepRun) -> Done | None:
        if "import" not in row.kept:
            start_when_free(row, self.start_import, row.kept["asked"])
            return None
        return made_of(row)

    def stop(self, row: StepRun) -> None:
        stop_import(row.kept.get("import"))


def stop_import(number: int | None) -> None:
    """Cancel the import of a step; after the transaction, because it removes files."""
    if number is None:
        return

    def cancel() -> None:
        intake = Import.objects.filter(pk=number).first()
        if intake is not None:
            with contextlib.suppress(imports.NotNow):  # it is over
                imports.stop(intake)

    transaction.on_commit(cancel, robust=True)


def start_when_free(row: StepRun, start_import: Any, request: Mapping[str, Any]) -> None:
    """Start the import if nothing blocks it, and store its number."""
    try:
        intake = start_import(request, row.run.owner)
    except imports.NotNow:
        return
    row.kept = row.kept | {"import": intake.pk}
    StepRun.objects.filter(pk=row.pk).update(kept=row.kept)


def made_of(row: StepRun, **further: float) -> Done | None:
    """Return the outcome of the import of a row; None while it runs.

    Raises:
        StepFailed: it failed.
    """
    intake = Import.objects.select_related("version__dataset").filter(pk=row.kept["import"]).first()
    if intake is None:
        raise StepFailed(_("The import was deleted."))
    if intake.state in (Import.State.FAILED, Import.State.CANCELLED):
        raise StepFailed(intake.error or _("The import was cancelled."))
    if intake.state != Import.State.DONE or intake.version is None:
        return None
    return Done(outputs_of(intake.version, row, **further))


def outputs_of(version: DatasetVersion, row: StepRun, **further: float) -> dict[str, Any]:
    """A version as outputs: itself, and how many images and annotations it has, by split as well."""
    counted = {"images": version.image_count, "annotations": version.annotation_count}
    counted |= {name: count for name, count in version.splits.items() if name}
    return {"data": reference("dataset", version), "figures": figures(counted | further, row)}


def target(name: str, user: User, usual: Dataset | None = None) -> Dataset:
    """Return the dataset that gets a version: the one of this name, created if missing; "" is the usual one.

    Raises:
        NotAllowed: the person's roles do not allow it.
        Invalid: it is not theirs to change.
    """
    editable = Dataset.objects.editable_by(user)
    if not name and usual is not None:
        if not editable.filter(pk=usual.pk).exists():
            message = _("You cannot edit %(dataset)s. Enter the name of one of your datasets.")
            raise Invalid(message % {"dataset": usual}, field="into")
        return usual
    named = list(editable.filter(name=name).order_by("pk")[:50])
    own = [row for row in named if row.owner_id == user.pk]
    if match := (own or named)[:1]:
        dataset: Dataset = match[0]
        return dataset
    user.require(Action.DATASETS_CREATE)
    return datasets.create(owner=user, name=name, intro="")


def check_into(params: Mapping[str, Any], user: User) -> None:
    """Refuse early a name that no dataset can have."""
    name = params.get("into") or ""
    if name and not Dataset.objects.editable_by(user).filter(name=name).exists():
        try:
            datasets.check(owner=user, name=name)
        except Invalid as exc:
            raise Invalid(exc.message, field="into") from None


def named_after(call: Call, version: DatasetVersion) -> str:
    """A name of a dataset for what this step makes of a version; the same in each run."""
    step = call.row.step.replace("/", "_")
    return titles.derive_name(f"{version.dataset.name[: NAME_MAX - 11]}_{step[:10]}", room=NAME_MAX)


def version_of(request: Mapping[str, Any], user: User) -> DatasetVersion:
    """Return the source version."""
    return rows.dataset_version({"id": request["data"], "label": request["label"]}, user)


def _data(call: Call) -> tuple[DatasetVersion, dict[str, Any]]:
    data_ref = call.only("data")
    version = rows.dataset_version(data_ref, call.user)
    return version, {"data": version.pk, "label": str(version)}


class FilterStep(MakesVersion):
    """A version of the images that match."""

    name = "filter"
    label = gettext_lazy("Select images")
    description = gettext_lazy("Creates a dataset from matching images, with their annotations and splits.")
    icon = "filter"
    params = (
        Param("query", gettext_lazy("Images"), required=True, help=gettext_lazy(
            "As in the address of the gallery: split=train&class=cell&annotated=yes&q=smear. A repeated key "
            "matches any of its values.")),
        INTO_OWN,
    )  # fmt: skip

    def check(self, params: Mapping[str, Any], user: User) -> None:
        refusals = Refusals()
        with refusals:
            if params.get("query"):
                choosing.parse(params["query"])
        with refusals:
            check_into(params, user)
        refusals.end()

    def build_request(self, call: Call) -> dict[str, Any]:
        self.check(call.params, call.user)
        version, request = _data(call)
        return request | {"query": call.params["query"], "into": call.params["into"] or named_after(call, version)}

    def start_import(self, request: Mapping[str, Any], user: User) -> Import:
        version = version_of(request, user)
        return choosing.start(version=version, query=request["query"], dataset=target(request["into"], user), by=user)


class SplitStep(MakesVersion):
    """A version with other splits."""

    name = "split"
    label = gettext_lazy("Split")
    description = gettext_lazy("Splits the images into train, val and test again, balanced by class.")
    icon = "sort"
    params = (
        Param("train", gettext_lazy("Train (%)"), form="whole", default=80, low=0, high=100),
        Param("val", gettext_lazy("Val (%)"), form="whole", default=10, low=0, high=100),
        Param("test", gettext_lazy("Test (%)"), form="whole", default=10, low=0, high=100),
        Param("seed", gettext_lazy("Seed"), form="whole", default=0, low=0, high=splits.SEED_MAX),
        Param("group_by", gettext_lazy("Keep together"), form="choice", default="equal", choices=(
            ("equal", gettext_lazy("Only identical files")),
            ("folder", gettext_lazy("Images of the same folder")),
            ("prefix", gettext_lazy("Images whose names differ only in their last number")))),
        INTO,
    )  # fmt: skip

    def check(self, params: Mapping[str, Any], user: User) -> None:
        refusals = Refusals()
        with refusals:
            if {"train", "val", "test", "seed"} <= params.keys():
                _wish(params)
        with refusals:
            check_into(params, user)
        refusals.end()

    def build_request(self, call: Call) -> dict[str, Any]:
        self.check(call.params, call.user)
        return _data(call)[1] | dict(call.params)

    def start_import(self, request: Mapping[str, Any], user: User) -> Import:
        version = version_of(request, user)
        into = target(request["into"], user, version.dataset)
        return splits.start(version=version, wish=_wish(request), by=user, dataset=into)


def _wish(params: Mapping[str, Any]) -> Wish:
    group = params.get("group_by", "equal")
    shares = {name: params[name] for name in ("train", "val", "test", "seed")}
    return splits.wish_of(**shares, group="" if group == "equal" else group)


class MergeStep(MakesVersion):
    """A version of several."""

    name = "merge"
    label = gettext_lazy("Merge")
    description = gettext_lazy(
        "Merges dataset versions: classes with the same name are merged, duplicate images are included once."
    )
    icon = "group"
    inputs = (Port("data", gettext_lazy("Data"), "dataset", many=True),)
    params = (INTO_OWN,)

    def check(self, params: Mapping[str, Any], user: User) -> None:
        check_into(params, user)

    def build_request(self, call: Call) -> dict[str, Any]:
        self.check(call.params, call.user)
        versions = [rows.dataset_version(data_ref, call.user) for data_ref in call.inputs["data"]]
        listed = {version.pk: str(version) for version in versions}  # each once, in their order
        into = call.params["into"] or named_after(call, versions[0])
        return {"versions": [[number, label] for number, label in listed.items()], "into": into}

    def start_import(self, request: Mapping[str, Any], user: User) -> Import:
        versions = [rows.dataset_version({"id": number, "label": label}, user) for number, label in request["versions"]]
        merging.check(versions)
        return merging.start(versions=versions, dataset=target(request["into"], user), by=user)
