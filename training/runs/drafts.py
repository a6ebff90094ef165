"""Check a requested training as a whole before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import titles
from aiplatform.lib.errors import Invalid, Refusals
from datasets.models import DatasetVersion
from training.catalog import preset_fit
from training.catalog.task_kinds import TASKS, preset_for
from training.presets.catalog import PRESETS
from training.presets.preset import Preset
from training.programs import data_checks
from training.programs.requests import ProgramRequest, check_name
from training.runs import custom_code, explicit_mode, extra_options, parameters, pretrained_weights
from training.runs.models import ParameterSetVersion, TrainingDefaults, TrainingJob
from workers.core.device_kinds import CPU, GPU
from workers.core.models import ClusterDevice, Device, VirtualCluster
from workers.jobs.resource_request import Resources, check_priority, cluster_for
from workers.resources.clusters import members

MAX_NAME = 100
SWITCHES = {"keep_ms": "keep_ms", "show_step": "show_steps", "no_step": "no_steps"}
"""Additional parameters that are parameters of a preset, where it has them."""
MAX_PROCESSES = 64
PARTS = (
    "name", "extra", "arguments", "output_path", "processes", "command", "worker_command", "variables", "secrets",
)  # fmt: skip
"""What of a request means something without the rest, see `check_parts`."""


@dataclass(frozen=True, kw_only=True)
class TrainingRequest(ProgramRequest):
    """A requested training; code, image, variables, secrets and datasets are for custom code alone.

    Args:
        version: what it learns from; own code may do without, and take data that is not annotated.
        data_comes: the data is on its way, see `planned`; what depends on it is not looked at.
        preset: "" with no code takes the preset made for the data's labels.
        params: overrides of the preset's defaults, or all parameters of own code.
        set_version: the parameter set that `params` were begun from; a note, it changes none of them.
        eval_version: a second dataset for own code; presets score on a split of the first.
        start_file: of own code, where no preset is named.
        command: a line or a script for bash, in place of a start file; it needs no code.
        worker_command: what the machines beside the first run; "" the same.
        launcher: how each machine starts own code, see `programs.layout`; "" starts a start file once, or by torchrun
            where it has several processes or machines.
        arguments: words after the start file; `{resume} {data} {output} {params}` become paths.
        writes_checkpoints: own code keeps to the checkpoint protocol, so it can be restored.
        extra: additional parameters as one line, see `additional`.
        output_path: folder in the code whose content counts as the job's outputs.
        gpus_per_node: 0 trains on CPU; None takes a GPU where there are any and the preset can use one.
        processes: per node; 0 means one per card for a preset, and one for own code, which runs as it is.
        explicit: large-scale mode, see `explicit_mode.check`.
        parent: the training this one was made from.
    """

    version: DatasetVersion | None = None
    data_comes: bool = False
    description: str = ""
    preset: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    set_version: ParameterSetVersion | None = None
    start_file: str = ""
    command: str = ""
    worker_command: str = ""
    launcher: str = ""
    arguments: str = ""
    writes_checkpoints: bool = False
    extra: str = ""
    output_path: str = ""
    eval_version: DatasetVersion | None = None
    min_nodes: int = 0
    gpus_per_node: int | None = None
    processes: int = 0
    explicit: bool = False
    parent: TrainingJob | None = None

    @property
    def is_own_code(self) -> bool:
        return not self.preset and (self.code is not None or bool(self.command))


@dataclass(frozen=True)
class Draft:
    """A training that may be queued: the unsaved row and what the queue has to know."""

    name: str
    training: TrainingJob
    resources: Resources


def check(user: User, request: TrainingRequest) -> Draft:
    """Check a request and turn it into a draft; nothing is written.

    Raises:
        VersionNotReady, data_checks.WrongTask: the data does not fit.
        NotAMember: the person does not belong to the cluster.
        BadParameter, BadSwitch, BadStartFile, Invalid: a value is wrong.
        NotAllowed: urgent, without the right to it.
    """
    refusals, preset, switches = Refusals(), None, {}
    with refusals:
        check_name(request.name)
    with refusals:
        cluster_for(user, request.cluster)
    with refusals:
        preset = _preset(request)
    with refusals:
        _check_data(user, request, preset)
    with refusals:
        if request.explicit and (preset or request.is_own_code):
            explicit_mode.check(preset, request.params, data_comes=request.data_comes)
    with refusals:
        check_priority(user, request.priority)
    with refusals:
        switches = parse_switches(request.extra) if request.extra else _standing(preset)
    with refusals:
        _check_processes(request.processes)
    with refusals:
        if request.min_nodes and request.is_own_code:
            text = _("Custom code runs on all its nodes or none. Clear the minimum nodes, or choose a preset.")
            raise Invalid(text, field="min_nodes")
    training = TrainingJob(
        description=request.description,
        preset=preset.name if preset else "",
        extra=switches,
        processes=request.processes,
        version=request.version,
        version_label=str(request.version or "")[:60],
        eval_version=request.eval_version,
        parent=request.parent,
    )
    with refusals:
        if preset and switches.get("show_batch") and not preset.looks:
            raise extra_options.BadSwitch(_("%(preset)s does not support previews.") % {"preset": _(preset.title)})
        if preset:
            training.params = pretrained_weights.settled(user, preset, _preset_params(preset, request.params, switches))
        elif request.is_own_code:
            if switches.get("show_batch"):
                raise extra_options.BadSwitch(_("-ShowBatch previews a preset. Custom code has no preset."))
            custom_code.apply_request(training, user, request)
    with refusals:
        gpus = _cards(user, request, switches, preset)
    refusals.end()
    look = "preview" if switches.get("show_batch") else ""
    name = request.name or _name_for(user, request, preset.name if preset else "", look)
    return Draft(name, training, _resources(user, request, gpus))


def resources_of(user: User, request: TrainingRequest) -> Resources:
    """What a request asks of the machines, whatever else is wrong with it."""
    name = request.preset or (request.version and not request.is_own_code and preset_for(request.version)) or ""
    return _resources(user, request, _cards(user, request, {}, PRESETS.get(name)))


def _resources(user: User, request: TrainingRequest, gpus: int) -> Resources:
    return {**replace(request, gpus_per_node=gpus).resources(user), "min_nodes": request.min_nodes}


def check_parts(
    *,
    name: str = "",
    extra: str = "",
    arguments: str = "",
    output_path: str = "",
    processes: int = 0,
    command: str = "",
    worker_command: str = "",
    variables: Mapping[str, str] | None = None,
    secrets: Mapping[str, str] | None = None,
) -> None:
    """Refuse at once the parts of a request that `check` refuses regardless of the others."""
    refusals = Refusals()
    with refusals:
        check_name(name)
    with refusals:
        parse_switches(extra)
    with refusals:
        custom_code.check_parts(
            arguments=arguments, output_path=output_path, command=command, worker_command=worker_command,
            variables=variables, secrets=secrets,
        )  # fmt: skip
    with refusals:
        _check_processes(processes)
    refusals.end()


def parse_switches(line: str) -> dict[str, Any]:
    """The additional parameters, see `extra_options.parse`; cards are looked for where some are named."""
    return extra_options.parse(line, card_ids=card_ids() if "-gpu" in line.lower() else None)


def standing_extra() -> str:
    """The additional parameters of trainings that give none, as an administrator wrote them."""
    row = TrainingDefaults.objects.first()
    return row.extra if row else ""


def _standing(preset: Preset | None) -> dict[str, Any]:
    """The standing additional parameters, without those that the preset does not know."""
    switches = parse_switches(standing_extra())
    if preset is None:
        return switches
    names = {param.name for param in preset.parameters}
    return {key: value for key, value in switches.items() if SWITCHES.get(key, "") in names or key not in SWITCHES}


def check_standing(line: str) -> None:
    """Refuse a line of additional parameters that cannot stand for every training."""
    switches = extra_options.parse(line)
    if "gpu" in switches:
        raise extra_options.BadSwitch(_("Every training requests its own GPUs. Remove -gpu."))
    if switches.get("show_batch"):
        raise extra_options.BadSwitch(_("-ShowBatch would turn every training into a preview. Remove it."))


def _check_data(user: User, request: TrainingRequest, preset: Preset | None) -> None:
    """Refuse datasets that a preset cannot learn from; `custom_code` checks those of custom code."""
    if request.is_own_code:
        return
    refusals = Refusals()
    with refusals:
        if request.version is not None:
            data_checks.check_annotated(user, request.version)
        elif not request.data_comes:
            raise Invalid(_("Choose a training dataset."), field="version")
    with refusals:
        if preset and request.version is not None:
            _check_task(preset, request.version)
    with refusals:
        if preset and request.eval_version is not None:
            message = _(
                "A preset evaluates on a split of its own dataset. Evaluate the finished model on other data instead."
            )
            raise Invalid(message, field="eval_version")
    with refusals:
        custom_code.check_none(request)
    with refusals:
        if preset and request.following.outputs_of:
            message = _("A preset trains on a dataset. Create a dataset from those outputs, and choose it here.")
            raise Invalid(message, field="outputs_of")
    with refusals:
        if preset and request.gpus_per_node and request.device_kind not in preset.device_kinds:
            message = _("Presets train on GPUs or on the CPU. Choose another device type.")
            if GPU.name not in preset.device_kinds:
                message = _("%(preset)s trains only on CPUs. Request no GPUs.") % {"preset": _(preset.title)}
            raise Invalid(message, field="device_kind")
    refusals.end()


def _name_for(user: User, request: TrainingRequest, preset: str, look: str) -> str:
    """A name such as cells_detect, or cells_detect_2 where the person has one of that name."""
    taken = set(TrainingJob.objects.filter(job__owner=user).values_list("job__name", flat=True))
    if request.version is None:
        return titles.derive_name(custom_code.name_stem(request), taken=taken, room=MAX_NAME)
    return titles.derive_name(request.version.dataset.name, preset, look, taken=taken, room=MAX_NAME)


def _preset(request: TrainingRequest) -> Preset | None:
    """Return the preset requested; with neither preset nor code the one made for the data's labels."""
    if request.preset:
        return parameters.preset_named(request.preset)
    if request.is_own_code:
        return None
    if request.version is not None and (suggested := preset_for(request.version)):
        return PRESETS[suggested]
    if request.data_comes:
        return None
    raise Invalid(_("Choose a preset, or upload your own code."), field="preset")


def _check_task(preset: Preset, version: DatasetVersion) -> None:
    if not preset_fit.can_learn(preset, version):
        task = TASKS.get(preset.task)
        facts = {"preset": _(preset.title), "version": version, "labels": version.get_task_display()}
        raise data_checks.WrongTask(str(task.refusal) % facts)


def _preset_params(preset: Preset, params: Mapping[str, Any], switches: Mapping[str, Any]) -> dict[str, Any]:
    """Return the preset's parameters, including switches that are also parameters."""
    merged = dict(params)
    names = {param.name for param in preset.parameters}
    for switch, name in SWITCHES.items():
        if switch not in switches:
            continue
        if name not in names:  # better refused than taken and not heeded
            word = extra_options.written({switch: switches[switch]})
            raise extra_options.BadSwitch(
                _("%(preset)s does not support %(switch)s.") % {"preset": preset.name, "switch": word}
            )
        merged[name] = switches[switch]
    return parameters.read_complete(preset, merged)


def _check_processes(requested: int) -> None:
    if not 0 <= requested <= MAX_PROCESSES:
        raise Invalid(
            _("Processes per node must be from 1 to %(limit)s, or 0 to choose automatically.")
            % {"limit": MAX_PROCESSES},
            field="processes",
        )


def card_ids(kind: str = GPU.name) -> list[int]:
    """Ids of the cards of a kind that exist on any machine."""
    cards = Device.objects.filter(kind=kind, health=Device.Health.OK)
    return sorted(set(cards.values_list("index", flat=True)))


def default_gpus(
    user: User, preset: Preset | None, *, kind: str = GPU.name, cluster: VirtualCluster | None = None
) -> int:
    """Return the GPUs per node of a request that names none: one if the preset, a node and the cluster have one.

    Args:
        cluster: None is the user's current one.
    """
    if kind == CPU.name or (preset is not None and kind not in preset.device_kinds) or not card_ids(kind):
        return 0
    cluster_id = members.current_id(user) if cluster is None else cluster.pk
    none = ClusterDevice.objects.filter(cluster_id=cluster_id, kind=kind, guaranteed=0, borrows=False)
    return 0 if none.exists() else 1


def _cards(user: User, request: TrainingRequest, switches: Mapping[str, Any], preset: Preset | None) -> int:
    """GPUs per node: as requested, else as many as -gpu names, else the default."""
    requested = request.gpus_per_node
    named = len(switches["gpu"]) if "gpu" in switches else None
    if named is not None and requested not in (None, named):
        raise Invalid(
            _("-gpu names %(named)s GPUs, but %(requested)s are requested.") % {"named": named, "requested": requested},
            field="gpus_per_node",
        )
    if named is not None:
        return named
    if requested is not None:
        return requested
    return default_gpus(user, preset, kind=request.device_kind, cluster=request.cluster)
