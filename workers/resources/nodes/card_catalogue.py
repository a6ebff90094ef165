"""Known cards: published rates and memory, and what a machine with cards should have beside them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.translation import gettext as _

from workers.core.models import Device, Node

GIB_MIB = 1024


@dataclass(frozen=True)
class KnownCard:
    """Published peak rates of a card, without sparsity; None where no source says.

    Attributes:
        names: what the driver calls it.
        fp64, fp32, mixed: TFLOPS; `mixed` multiplies 16-bit numbers in tensor cores and adds up in 32 bits.
        memory_gb: GB of its own memory.
        bandwidth: GB/s between the card and that memory.
        sources: where the figures were read.
    """

    names: tuple[str, ...]
    fp64: float | None
    fp32: float | None
    mixed: float | None
    memory_gb: int
    bandwidth: int
    sources: tuple[str, ...]


_V100 = (
    "requirements of this platform, device catalogue (V100)",
    "https://developer.nvidia.com/programming-tensor-cores-cuda-9-0",
)
_A100 = "https://glennklockwood.com/garden/processors/A100"
_A100_PCIE = "https://www.thundercompute.com/blog/nvidia-a100-specs-full-guide"
_H100 = "https://archive-lib.hpctech.co.jp/gpuproduct/nvidia-h100.html"  # with sparsity there, half of it without
_RTX = "https://cuttingedgegamer.com/2022/12/"

CARDS: tuple[KnownCard, ...] = (
    KnownCard(("Tesla V100-SXM2-16GB",), 7.8, 15.7, 125, 16, 900, _V100),
    KnownCard(("Tesla V100-PCIE-16GB",), 7, 14, 112, 16, 900, _V100[:1]),
    KnownCard(("NVIDIA A100-SXM4-40GB", "A100-SXM4-40GB"), 9.7, 19.5, 312, 40, 1555, (_A100,)),
    KnownCard(("NVIDIA A100-SXM4-80GB", "A100-SXM4-80GB"), 9.7, 19.5, 312, 80, 2039, (_A100,)),
    KnownCard(
        ("NVIDIA A100-PCIE-40GB", "A100-PCIE-40GB"), 9.7, 19.5, 312, 40, 1555,
        ("https://hmc-tech.com/gpu/nvidia-l4-vs-nvidia-a100-40gb", _A100_PCIE),
    ),
    KnownCard(("NVIDIA A100 80GB PCIe",), None, None, None, 80, 1935, (_A100_PCIE,)),
    KnownCard(("NVIDIA H100 80GB HBM3",), 34, 67, 989, 80, 3350, (_H100,)),
    KnownCard(("NVIDIA H100 PCIe",), 26, 51, 756, 80, 2000, (_H100,)),
    KnownCard(
        ("NVIDIA H200",), 34, 67, 989, 141, 4800,
        ("https://glennklockwood.com/garden/processors/h100", "https://www.saulelectric.com/nvidia-h200.html"),
    ),
    KnownCard(("Tesla T4",), 0.25, 8.1, 65, 16, 320, ("https://sysrqmts.com/en/gpus/nvidia/tesla/t4",)),
    KnownCard(
        ("NVIDIA L4",), 0.47, 30.3, 121, 24, 300,
        ("https://fpsbench.com/compare/gpu/nvidia-l4-vs-nvidia-tesla-m40", "https://grokipedia.com/page/NVIDIA_L4_vs_L40S"),
    ),
    KnownCard(("NVIDIA GeForce RTX 3090",), 0.56, 35.6, None, 24, 936, (_RTX,)),
    KnownCard(
        ("NVIDIA GeForce RTX 4090",), 1.29, 82.6, 165.2, 24, 1008,
        (_RTX, "https://waredb.com/processor/nvidia-geforce-rtx-4090"),
    ),
)  # fmt: skip
_BY_NAME = {name: card for card in CARDS for name in card.names}


def find(model: str) -> KnownCard | None:
    """The card that a driver calls `model`; None for one that is not known, parts of cards (MIG) among them."""
    return _BY_NAME.get(model)


def rates(card: KnownCard) -> str:
    """Its figures in a line, in the reader's language; only those that a source gives."""
    peaks = [("FP64", card.fp64), ("FP32", card.fp32), (_("mixed"), card.mixed)]
    figures = [f"{name} {value:g}" for name, value in peaks if value is not None]
    memory = _("%(memory)s GB at %(bandwidth)s GB/s") % {"memory": card.memory_gb, "bandwidth": card.bandwidth}
    return " · ".join([*([_("%(rates)s TFLOPS") % {"rates": ", ".join(figures)}] if figures else []), memory])


def about(model: str, *, is_real: bool) -> str:
    """What the catalogue says of a card on a machine; "" of a simulated one."""
    if not is_real:
        return ""
    card = find(model)
    return rates(card) if card else _("Not in the GPU catalog: its performance is unknown.")


def advice(memory_mib: int, cards_mib: Iterable[int]) -> str:
    """What a machine's memory should be for its real cards; "" where it is enough or has none.

    Args:
        memory_mib: of the machine.
        cards_mib: of each card.
    """
    total = sum(cards_mib)
    if not total or memory_mib >= total:
        return ""
    return _(
        "The memory of the node, %(memory)s GiB, is smaller than that of its GPUs, %(cards)s GiB. One to two "
        "times the GPU memory is recommended."
    ) % {"memory": memory_mib // GIB_MIB, "cards": -(-total // GIB_MIB)}


def advice_of(node: Node) -> str:
    """`advice` for a node by its rows; slices and missing devices do not count."""
    real = [
        device.memory_mib
        for device in node.devices.all()
        if device.kind != Device.Kind.CPU
        and not device.simulated
        and device.parent is None
        and device.health != Device.Health.GONE
    ]
    return advice(node.memory_mib, real)
