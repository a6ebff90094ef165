"""How models that were not trained here lay out their outputs: found by shapes and names, or declared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

END_TO_END = "end to end"  # a model whose exporter says that it answers final boxes


class Unfit(Exception):
    """The outputs of a model are not laid out so."""


@dataclass(frozen=True)
class Output:
    """One output of a model: a free size is -1; `maker` is the ONNX operator that computes it."""

    name: str
    shape: tuple[int, ...]
    maker: str = ""

    def size(self, axis: int) -> int | None:
        """Return its size along an axis; None where the size is free."""
        return self.shape[axis] if self.shape[axis] > 0 else None


Outputs = Sequence[Output]
Found = tuple[Mapping[str, str], int | None]  # role → tensor; how many classes it answers for, None where that is free


@dataclass(frozen=True)
class Layout:
    """One way to lay out the answers of a task.

    Args:
        name: what scripts call it.
        label: what people read, in English.
        roles: of the outputs, as model.json has them.
        find: the tensors of the roles; raises Unfit.
        fits: whether shapes and names speak for it, given the number of labels (0: unknown).
        resize: how pictures usually come into the input of such models.
        ground: the first class of the outputs may be the ground, which has no label.
        elsewhere: what has outputs so: architectures of transformers by their names, and END_TO_END.
        side: px, default side of an input whose size is free and not declared.
        pixels: rules for pixels, the more usual for such models first.
        in_snippets: the lines in other languages read it, see inference/registry/snippets.
    """

    name: str
    label: str
    roles: tuple[str, ...]
    find: Callable[[Outputs], Found]
    fits: Callable[[Outputs, int], bool] = lambda _outputs, _labels: False
    resize: str = "stretch"
    ground: bool = False
    elsewhere: tuple[str, ...] = ()
    side: int = 224
    pixels: tuple[str, ...] = ("imagenet", "unit", "signed", "bytes")
    in_snippets: bool = True


def one(outputs: Outputs, rank: int, *names: str) -> Output:
    """The output of so many dimensions, where there are several by one of these names.

    Raises:
        Unfit: there is none.
    """
    fit = of_rank(outputs, rank)
    if not fit:
        raise Unfit
    return next((output for name in names for output in fit if output.name == name), fit[0])


def of_rank(outputs: Outputs, rank: int) -> list[Output]:
    """Outputs of so many dimensions."""
    return [output for output in outputs if len(output.shape) == rank]


def per_class(name: str, label: str, *, rank: int = 2, maker: str = "", ground: bool = False) -> Layout:
    """One output with a number for each class in its second dimension; `maker` computes it where it is that output."""

    def find(outputs: Outputs) -> Found:
        output = one(outputs, rank, name, "output")
        return {name: output.name}, output.size(1)

    def fits(outputs: Outputs, _labels: int) -> bool:
        flat = of_rank(outputs, rank)
        return bool(maker and flat) and one(outputs, rank, name, "output").maker == maker

    return Layout(name, label, (name,), find, fits, ground=ground)
