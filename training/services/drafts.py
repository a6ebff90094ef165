"""Check a requested training as a whole before anything is written."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import PurePosixPath
from typing import Any

from django.db.models import Max
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import titles, wording
from aiplatform.lib.errors import DomainError, Invalid, Refusals
from aiplatform.lib.titles import TITLE
from datasets.models import DatasetVersion
from training.models import CodeSnapshot, TrainingJob
from training.presets.catalog import PRESETS
from training.presets.preset import Preset
from training.services import additional, parameters, snapshots
from training.task_kinds import TASKS, preset_for
from workers.jobs.resource_request import Resources, check_priority, cluster_for
from workers.models import Device, Node, VirtualCluster

DEFAULT_CPUS = 4.0  # cores of a training, where the machine has them
MAX_NAME = 100
MAX_PROCESSES = 64
PARTS = ("name", "extra", "arguments", "output_path", "processes")
"""What of a request means something without the rest, see `check_parts`."""
PLACEHOLDERS = ("resume", "data", "output", "params")


class VersionNotReady(DomainError):
    code = "version_not_ready"
    field = "version"


class WrongTask(DomainError):
    code = "wrong_task"
    field = "version"


@dataclass(frozen=True, kw_only=True)
class TrainingRequest:
    """A requested training.

    Args:
        name: "" takes one of data and preset.
        cluster: None takes the person's current one.
        preset: "" with no code takes the preset made for the data's labels.
        params: overrides of the preset's defaults, or all parameters of own code.
        eval_version: a second dataset for own code; presets score on a split of the first.
        code, start_file: own code, where no preset is named.
        arguments: words after the start file; `{resume} {data} {output} {params}` become paths.
        writes_checkpoints: own code keeps to the checkpoint protocol, so it can be restored.
        extra: additional parameters as one line, see `additional`.
        output_path: folder in the code whose content counts as the job's outputs.
        gpus_per_node: 0 trains on CPU; None takes a card where there are any.
        processes: per node; 0 means one per card for a preset, and one for own code, which runs as it is.
        cpus: cores per node; None chooses.
        share, card_memory_mib, memory_mib, priority, preemptible, max_runtime: see `resource_request.Resources`.
        parent: the training this one was made from.
    """

    name: str
    version: DatasetVersion
    cluster: VirtualCluster | None = None
    description: str = ""
    preset: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    code: CodeSnapshot | None = None
    start_file: str = ""
    arguments: str = ""
    writes_checkpoints: bool = False
    extra: str = ""
    output_path: str = ""
    eval_version: DatasetVersion | None = None
    nodes: int = 1
    gpus_per_node: int | None = None
    processes: int = 0
    cpus: float | None = None
    share: int = 8
    card_memory_mib: int = 0
    memory_mib: int = 0
    priority: int = 0
    preemptible: bool = False
    max_runtime: timedelta | None = None
    parent: TrainingJob | None = None


@dataclass(frozen=True)
class Draft:
    """A training that may be queued: the unsaved row and what the queue has to know."""

    name: str
    training: TrainingJob
    resources: Resources


def check(user: User, request: TrainingRequest) -> Draft:
    """Check a request and turn it into a draft; nothing is written.

    Raises:
        VersionNotReady, WrongTask: the data does not fit.
        NotAMember: the person does not belong to the cluster.
        BadParameter, BadSwitch, BadStartFile, Invalid: a value is wrong.
        NotAllowed: urgent, without the right to it.
    """
    found, preset, switches = Refusals(), None, {}
    with found:
        check_name(request.name)
    with found:
        cluster = cluster_for(user, request.cluster)
    with found:
        preset = _preset(request)
    with found:
        check_version(user, request.version)
        if preset:
            _check_task(preset, request.version)
    with found:
        _check_second(user, request, preset)
    with found:
        check_priority(user, request.priority)
    with found:
        switches = parse_switches(request.extra)
    with found:
        _check_processes(request.processes)
    training = TrainingJob(
        description=request.description,
        preset=preset.name if preset else "",
        extra=switches,
        processes=request.processes,
        version=request.version,
        version_label=str(request.version)[:60],
        eval_version=request.eval_version,
        parent=request.parent,
    )
    with found:
        if preset:
            training.params = _preset_params(preset, request.params, switches)
        elif request.code is not None:
            _own_code(training, request.code, request)
    with found:
        gpus = _cards(request.gpus_per_node, switches)
    found.end()
    if not preset:
        training.processes = training.processes or 1  # a script that knows of no ranks would do all of its work twice
    resources = _resources(request, cluster, gpus)
    name = request.name or _name_for(user, request.version, preset.name if preset else "")
    return Draft(name, training, resources)


def resources_of(user: User, request: TrainingRequest) -> Resources:
    """What a request asks of the machines, whatever else is wrong with it."""
    return _resources(request, cluster_for(user, request.cluster), _cards(request.gpus_per_node, {}))


def _resources(request: TrainingRequest, cluster: VirtualCluster, gpus: int) -> Resources:
    return {
        "cluster": cluster,
        "nodes": request.nodes,
        "gpus_per_node": gpus,
        "share": request.share,
        "card_memory_mib": request.card_memory_mib,
        "cpus": request.cpus if request.cpus is not None else default_cpus(),
        "memory_mib": request.memory_mib,
        "priority": request.priority,
        "preemptible": request.preemptible,
        "max_runtime": request.max_runtime,
    }


def check_parts(
    *,
    name: str = "",
    extra: str = "",
    arguments: str = "",
    output_path: str = "",
    processes: int = 0,
) -> None:
    """Refuse at once what `check` refuses of parts of a request that mean something without the others."""
    found = Refusals()
    with found:
        check_name(name)
    with found:
        parse_switches(extra)
    with found:
        check_arguments(arguments)
    with found:
        check_output_path(output_path)
    with found:
        _check_processes(processes)
    found.end()


def check_name(name: str) -> None:
    """Refuse odd characters; "" is a name to be made."""
    if name and not re.fullmatch(TITLE.regex, name):
        raise Invalid(str(TITLE.message), field="name")


def parse_switches(line: str) -> dict[str, Any]:
    """The additional parameters, see `additional.parse`; cards are looked for where some are named."""
    return additional.parse(line, card_ids=card_ids() if "-gpu" in line.lower() else None)


def _check_second(user: User, request: TrainingRequest, preset: Preset | None) -> None:
    """Refuse a second dataset that a preset has no use for, or that does not go with the first."""
    if request.eval_version is None:
        return
    if preset:
        raise Invalid(
            _("A preset scores on a split of its own dataset. Evaluate the finished model on other data instead."),
            field="eval_version",
        )
    check_version(user, request.eval_version, field="eval_version")
    _check_alike(request.version, request.eval_version)


def check_version(user: User, version: DatasetVersion, *, field: str = "version") -> None:
    """Refuse data a training cannot use.

    Raises:
        VersionNotReady: being imported, not annotated, being deleted, or no longer shown to this person.
    """
    current = check_readable(user, version, field=field)
    if not current.annotated:
        raise VersionNotReady(wording.message("training.version_not_annotated", version=current), field=field)


def check_readable(user: User, version: DatasetVersion, *, field: str = "version") -> DatasetVersion:
    """Refuse data that a job of this person cannot read; returns the row as it is now.

    Raises:
        VersionNotReady: being imported, being deleted, or no longer shown to this person.
    """
    current: DatasetVersion | None = (
        DatasetVersion.objects.usable_by(user).select_related("dataset").filter(pk=version.pk).first()
    )
    if current is None or current.dataset.deleting:
        raise VersionNotReady(wording.message("training.dataset_gone"), field=field)
    if not current.is_ready:
        raise VersionNotReady(wording.message("training.version_not_imported", version=current), field=field)
    return current


def _name_for(user: User, version: DatasetVersion, preset: str) -> str:
    """A name such as cells_detect, or cells_detect_2 where the person has one of that name."""
    taken = set(TrainingJob.objects.filter(job__owner=user).values_list("job__name", flat=True))
    return titles.derived(version.dataset.name, preset, taken=taken, room=MAX_NAME)


def _preset(request: TrainingRequest) -> Preset | None:
    """Return the preset requested; with neither preset nor code the one made for the data's labels."""
    if request.preset:
        return parameters.preset_named(request.preset)
    if request.code is not None:
        return None
    if suggested := preset_for(request.version):
        return PRESETS[suggested]
    raise Invalid(_("Choose a preset, or bring your own code."), field="preset")


def _check_task(preset: Preset, version: DatasetVersion) -> None:
    task = TASKS.get(preset.task)
    if not task.accepts(version):
        facts = {"preset": _(preset.title), "version": version, "labels": version.get_task_display()}
        raise WrongTask(str(task.refusal) % facts)


def _check_alike(version: DatasetVersion, other: DatasetVersion) -> None:
    def names(one: DatasetVersion) -> list[str]:
        return sorted(str(entry.get("name")) for entry in one.classes)

    if version.task != other.task or names(version) != names(other):
        raise WrongTask(
            _("%(other)s has other classes than %(version)s, so it cannot score this training.")
            % {"other": other, "version": version},
            field="eval_version",
        )


def _preset_params(preset: Preset, given: Mapping[str, Any], switches: Mapping[str, Any]) -> dict[str, Any]:
    """The preset's parameters, with the switches that are parameters of it as well."""
    merged = dict(given)
    names = {param.name for param in preset.parameters}
    for switch, name in (("keep_ms", "keep_ms"), ("show_step", "show_steps"), ("no_step", "no_steps")):
        if switch not in switches:
            continue
        if name not in names:  # better refused than taken and not heeded
            word = additional.written({switch: switches[switch]})
            raise additional.BadSwitch(
                _("%(preset)s does not know %(switch)s.") % {"preset": preset.name, "switch": word}
            )
        merged[name] = switches[switch]
    return parameters.read(preset, merged)


def _own_code(training: TrainingJob, code: CodeSnapshot, request: TrainingRequest) -> None:
    training.code = code
    found = Refusals()
    with found:
        training.start_file = snapshots.check_start_file(code, request.start_file)
    with found:
        training.arguments = check_arguments(request.arguments)
    with found:
        training.output_path = check_output_path(request.output_path)
    with found:
        training.params = parameters.plain_pairs(request.params)
    found.end()
    training.writes_checkpoints = request.writes_checkpoints


def check_arguments(line: str) -> str:
    """Words for own code, split as a shell would but never given to one.

    Raises:
        Invalid: an open quote, a NUL, or an unknown placeholder.
    """
    try:
        words = shlex.split(line)
    except ValueError:
        raise Invalid(_("A quotation mark in the run parameters is not closed."), field="arguments") from None
    if "\0" in line:
        raise Invalid(_("Run parameters cannot contain a NUL character."), field="arguments")
    for word in words:
        for name in re.findall(r"\{([a-z_]+)\}", word):
            if name not in PLACEHOLDERS:
                there = ", ".join(f"{{{known}}}" for known in PLACEHOLDERS)
                raise Invalid(
                    _("{%(name)s} is not known in run parameters. There are: %(there)s.")
                    % {"name": name, "there": there},
                    field="arguments",
                )
    return line.strip()


def check_output_path(given: str) -> str:
    """A folder in the code, as a clean relative path; "" for none.

    Raises:
        Invalid: it leads out of the code or has odd characters.
    """
    text = given.strip()
    path = PurePosixPath(text)
    parts = path.parts
    if not text or str(path) == ".":
        return ""
    if path.is_absolute() or ".." in parts or not text.isprintable() or parts[0].startswith("-"):
        raise Invalid(_("The output path is a folder inside your code, for instance runs."), field="output_path")
    return str(path)


def _check_processes(requested: int) -> None:
    if not 0 <= requested <= MAX_PROCESSES:
        raise Invalid(
            _("Processes per node: from 1 to %(limit)s, or 0 to let the platform choose.") % {"limit": MAX_PROCESSES},
            field="processes",
        )


def card_ids() -> list[int]:
    """Ids of the cards that exist on any machine."""
    cards = Device.objects.filter(kind=Device.Kind.GPU, health=Device.Health.OK)
    return sorted(set(cards.values_list("index", flat=True)))


def _cards(requested: int | None, switches: Mapping[str, Any]) -> int:
    """Cards per node: as requested, else as many as -gpu names, else one where there are any."""
    named = len(switches["gpu"]) if "gpu" in switches else None
    if named is not None and requested not in (None, named):
        raise Invalid(
            _("-gpu names %(named)s cards, but %(requested)s are requested.")
            % {"named": named, "requested": requested},
            field="gpus_per_node",
        )
    if named is not None:
        return named
    if requested is not None:
        return requested
    return 1 if card_ids() else 0


def default_cpus() -> float:
    """Cores for one training when nobody chose: up to four, never more than the largest machine has."""
    largest = Node.objects.aggregate(most=Max("cpu_cores"))["most"]
    return min(DEFAULT_CPUS, float(largest or 1))
