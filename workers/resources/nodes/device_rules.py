"""Device rules: which kinds and models of devices the machines have, and what a job may ask of each.

Forms, the API and the command line offer these; whether a request keeps to them the planner says, which reads the
same `device_kinds`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from workers.core.device_kinds import CPU, GPU, KINDS, DeviceKind, rules
from workers.core.models import Device, Node


@dataclass(frozen=True)
class DeviceRules:
    """What a job may ask of one kind of device, or of one model of it.

    Attributes:
        model: "" is any model of the kind.
        counts: cards that a job may ask for on each machine, as far as the largest has them.
        groups: indices of the cards of each group on the largest machine, such as "0–3".
        most: cards of the largest machine.
        machines, devices: how many have any, and how many cards that makes.
    """

    kind: DeviceKind
    model: str
    counts: tuple[int, ...]
    groups: tuple[str, ...]
    most: int
    machines: int
    devices: int

    @property
    def value(self) -> str:
        """Its value in a form and on a command line: `npu`, `gpu:NVIDIA H100`."""
        return f"{self.kind.name}:{self.model}" if self.model else self.kind.name

    @property
    def label(self) -> str:
        if self.kind is CPU:
            return _("CPU only")
        return _(self.model) if self.model else _("%(kind)s, any model") % {"kind": self.kind.label}

    @property
    def distributed_count(self) -> int | None:
        """Cards on each machine that a job over several must ask for; None: any allowed number."""
        return self.kind.distributed_count

    @property
    def sentences(self) -> list[str]:
        """The rules as sentences."""
        if self.kind is CPU:
            return [_("Runs on CPU cores, without GPUs.")]
        texts = [self._counts_text()]
        if self.kind.distributed_count is not None:
            texts.append(_("On multiple nodes: %(count)s on each.") % {"count": self.kind.distributed_count})
        if not self.kind.crosses_groups and len(self.groups) > 1:
            text = _("The GPUs %(groups)s form groups: a job stays within one group, or uses whole nodes.")
            texts.append(text % {"groups": " | ".join(self.groups)})
        if not self.kind.shareable:
            texts.append(_("GPUs of this kind cannot be shared."))
        total = ngettext(
            "%(machines)s node has such devices, %(devices)s in total.",
            "%(machines)s nodes have such devices, %(devices)s in total.",
            self.machines,
        )
        return [*texts, total % {"machines": self.machines, "devices": self.devices}]

    def _counts_text(self) -> str:
        if self.kind.counts:
            return _("Per node: %(counts)s GPUs.") % {"counts": ", ".join(map(str, self.counts))}
        text = ngettext("Up to %(most)s device per node.", "Up to %(most)s devices per node.", self.most)
        return text % {"most": self.most}


def on_offer(kinds: Iterable[str] = tuple(KINDS)) -> list[DeviceRules]:
    """The kinds of devices that nodes have, each followed by its models if there are several; CPU last.

    Args:
        kinds: names of those that count.
    """
    wanted = set(kinds)
    rows = Device.objects.exclude(node__state__in=(Node.State.REMOVED, Node.State.LOST))
    rows = rows.exclude(health=Device.Health.GONE).exclude(kind=CPU.name).filter(kind__in=wanted)
    cards = list(rows.order_by("node_id", "index").values_list("kind", "model", "node_id", "group", "index"))
    offers = []
    for kind in dict.fromkeys(name for name in (*KINDS, *(card[0] for card in cards)) if name != CPU.name):
        cards_of_kind = [card for card in cards if card[0] == kind]
        if not cards_of_kind:
            continue
        offers.append(_rules_of(rules(kind), "", cards_of_kind))
        models = sorted({card[1] for card in cards_of_kind if card[1]})
        if len(models) > 1:
            offers += [
                _rules_of(rules(kind), model, [card for card in cards_of_kind if card[1] == model]) for model in models
            ]
    return offers + ([DeviceRules(CPU, "", (0,), (), 0, 0, 0)] if CPU.name in wanted else [])


def parsed(value: str) -> tuple[str, str]:
    """(kind, model) of a `DeviceRules.value`."""
    kind, _colon, model = value.partition(":")
    return kind.strip(), model.strip()


def value_of(kind: str, model: str, cards: int) -> str:
    """The `DeviceRules.value` of a request; "" where it asks for no cards and leaves the kind open."""
    if not (cards or model) and kind == GPU.name:
        return ""
    return f"{kind}:{model}" if model else kind


def _rules_of(kind: DeviceKind, model: str, cards: list[tuple[str, str, int, int, int]]) -> DeviceRules:
    by_node: dict[int, list[tuple[int, int]]] = {}
    for _kind, _model, node, group, index in cards:
        by_node.setdefault(node, []).append((group, index))
    largest = max(by_node.values(), key=len)
    counts = tuple(count for count in kind.counts or range(len(largest) + 1) if count <= len(largest))
    return DeviceRules(kind, model, counts, _groups(largest), len(largest), len(by_node), len(cards))


def _groups(cards: list[tuple[int, int]]) -> tuple[str, ...]:
    """The indices of each group, "0–3" where they follow each other."""
    grouped: dict[int, list[int]] = {}
    for group, index in cards:
        grouped.setdefault(group, []).append(index)
    return tuple(_span(sorted(indices)) for _group, indices in sorted(grouped.items()))


def _span(indices: list[int]) -> str:
    first, last = indices[0], indices[-1]
    if len(indices) > 1 and last - first == len(indices) - 1:
        return f"{first}–{last}"
    return ", ".join(map(str, indices))
