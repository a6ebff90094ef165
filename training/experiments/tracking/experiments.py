"""Experiments: names by which a person's runs belong together, with the ids that MLflow's clients ask for.

Runs without a name of an experiment are in the one that MLflow calls Default and knows by the id 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import ids
from aiplatform.lib.errors import Invalid, NotAllowed
from training.experiments.models import Run
from training.experiments.tracking import refusals
from training.experiments.tracking.callers import Caller
from training.experiments.tracking.models import Experiment

DEFAULT, DEFAULT_ID = "Default", "0"
MAX_LENGTH = 100
MAX_EXPERIMENTS = 1000


def by_name(caller: Caller, name: str) -> Experiment:
    """Return an own experiment by its name; an unsaved row for the default one.

    The script of a job that has not opened its run yet names by this where it wants to belong.

    Raises:
        Missing: there is none.
    """
    stored = "" if name == DEFAULT else name
    experiment = (
        _default(caller.user) if not stored else Experiment.objects.filter(owner=caller.user, name=stored).first()
    )
    if experiment is None and Run.objects.filter(owner=caller.user, experiment=stored).exists():
        experiment = ensured(caller.user, [stored])[stored]
    if experiment is None:
        raise refusals.no_experiment(name)
    _take_in(caller, experiment)
    return experiment


def by_id(caller: Caller, text: str) -> Experiment:
    """Return an experiment that the caller may see.

    Raises:
        Missing: there is none.
    """
    if text == DEFAULT_ID:
        return _default(caller.user)
    number = ids.number(text)
    mine = Experiment.objects.filter(owner=caller.user) if caller.token else Experiment.objects.visible_to(caller.user)
    experiment = mine.filter(pk=number).first() if number else None
    if experiment is None:
        raise refusals.no_experiment(text)
    return experiment


def own(caller: Caller, text: str) -> Experiment:
    """Return an experiment that the caller may change and report to.

    Raises:
        Missing: there is none.
        NotAllowed: it is somebody else's.
    """
    experiment = by_id(caller, text)
    if experiment.owner_id != caller.user.pk:
        raise NotAllowed(_("This experiment belongs to another user."))
    return experiment


def create(caller: Caller, name: str, tags: Mapping[str, str]) -> Experiment:
    """Create an experiment.

    Raises:
        There: it is there already, perhaps among the deleted ones.
        Invalid: no name, or too long.
    """
    _check_name(name)
    if name == DEFAULT:
        raise refusals.There(_("An experiment named %(name)s already exists.") % {"name": name})
    experiment, made = Experiment.objects.get_or_create(owner=caller.user, name=name, defaults={"tags": dict(tags)})
    if not made:
        raise refusals.There(_("An experiment named %(name)s already exists.") % {"name": name})
    _take_in(caller, experiment)
    return experiment


def rename(experiment: Experiment, name: str) -> None:
    """Give an experiment and its runs another name.

    Raises:
        There, Invalid: see `create`.
    """
    _check_name(name)
    if not experiment.pk:
        raise Invalid(_("The experiment Default cannot be renamed."), field="new_name")
    if (
        name == DEFAULT
        or Experiment.objects.filter(owner=experiment.owner, name=name).exclude(pk=experiment.pk).exists()
    ):
        raise refusals.There(_("An experiment named %(name)s already exists.") % {"name": name})
    Run.objects.filter(owner=experiment.owner, experiment=experiment.name).update(experiment=name)
    experiment.name = name
    experiment.save(update_fields=["name", "updated_at"])


def archive(experiment: Experiment, *, archived: bool) -> None:
    """Take an experiment with its runs out of lists, or bring them back."""
    if not experiment.pk:
        raise Invalid(_("The experiment Default cannot be deleted."), field="experiment_id")
    Run.objects.filter(owner=experiment.owner, experiment=experiment.name).update(archived=archived)
    experiment.archived = archived
    experiment.save(update_fields=["archived", "updated_at"])


def all_of(user: User) -> list[Experiment]:
    """All experiments of a person, with rows for those that only runs name, and the default one."""
    names = Run.objects.filter(owner=user).exclude(experiment="").values_list("experiment", flat=True).distinct()
    ensured(user, names[:MAX_EXPERIMENTS])
    return [*Experiment.objects.filter(owner=user)[:MAX_EXPERIMENTS], _default(user)]


def ensured(user: User, names: Iterable[str]) -> dict[str, Experiment]:
    """Return experiments by name, created where they are missing."""
    wanted = {name for name in names if name}
    rows = Experiment.objects.filter(owner=user, name__in=wanted)
    by_name = {row.name: row for row in rows}
    missing = [Experiment(owner=user, name=name) for name in sorted(wanted - set(by_name))]
    if missing:
        Experiment.objects.bulk_create(missing, ignore_conflicts=True)
        by_name = {row.name: row for row in rows.all()}
    return by_name


def ids_of(runs: Iterable[Run]) -> dict[tuple[int, str], str]:
    """Return ids of the experiments of runs, by owner and name."""
    by_owner: dict[int, tuple[User, set[str]]] = {}
    for run in runs:
        by_owner.setdefault(run.owner_id, (run.owner, set()))[1].add(run.experiment)
    experiment_ids = {}
    for number, (owner, names) in by_owner.items():
        experiment_ids[number, ""] = DEFAULT_ID
        for name, row in ensured(owner, names).items():
            experiment_ids[number, name] = str(row.pk)
    return experiment_ids


def moved_at(experiment: Experiment) -> datetime:
    """When an experiment was last changed; of one without a row, when its owner came."""
    return experiment.updated_at or experiment.created_at


def _default(user: User) -> Experiment:
    return Experiment(owner=user, name="", created_at=user.date_joined, updated_at=user.date_joined)


def _check_name(name: str) -> None:
    if not name.strip() or len(name) > MAX_LENGTH:
        raise Invalid(
            _("The name of an experiment must have 1 to %(most)s characters.") % {"most": MAX_LENGTH}, field="name"
        )


def _take_in(caller: Caller, experiment: Experiment) -> None:
    """Let the run of a job belong to the experiment that its script names, until it opens the run.

    A client refuses to report to a run of another experiment than the one it was set to.
    """
    if caller.token is None or caller.token.opened or caller.own_run is None:
        return
    if caller.own_run.experiment != experiment.name and experiment.owner_id == caller.user.pk:
        caller.own_run.experiment = experiment.name
        caller.own_run.save(update_fields=["experiment"])


def set_tag(experiment: Experiment, key: str, value: str) -> None:
    """Add a tag, or change it."""
    if not experiment.pk:
        raise Invalid(_("The experiment Default cannot have tags."), field="experiment_id")
    experiment.tags = dict(list({**experiment.tags, key: value}.items())[:MAX_EXPERIMENTS])
    experiment.save(update_fields=["tags", "updated_at"])
