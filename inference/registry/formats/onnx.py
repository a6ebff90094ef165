"""Inspect an ONNX file and refuse what could harm whoever loads it.

Reads the file in place (memory map): weights are skipped, never copied, so a file of gigabytes costs
megabytes. Refused are: weights kept outside the file (they can name any path), sizes the file cannot
hold, operators from foreign libraries, and graphs whose nodes use what nothing has produced.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from django.utils.translation import gettext as _

from inference.registry.formats import protobuf
from inference.registry.formats.protobuf import Damaged, Span, numbers, text
from inference.registry.formats.shapes import MAX_RANK, ImpossibleShape, count_values

KNOWN_DOMAINS = {"", "ai.onnx", "ai.onnx.ml", "com.microsoft"}
MAX_NODES = 200_000
MAX_FIELDS = 2_000_000  # of all messages in the file: some ten of each node
MAX_ENDS = 2_000  # inputs and outputs of a graph
MAX_DEPTH = 16
MAX_METADATA_ENTRIES, MAX_METADATA_BYTES = 200, 256 << 10  # entries, and of each; what is beyond is left out
WIDTHS = {1: 4, 2: 1, 3: 1, 4: 2, 5: 2, 6: 4, 7: 8, 9: 1, 10: 2, 11: 8, 12: 4, 13: 8, 14: 8, 15: 16, 16: 2}

Scopes = tuple[set[str], ...]  # names of tensors that a graph and those around it know


class RefusedModel(Exception):
    """The file is broken or unsafe; the message says what and what to do."""


@dataclass
class Tensor:
    """An input or output; a free size is -1."""

    name: str
    element_type: int = 0
    shape: list[int] = field(default_factory=list)


@dataclass
class Summary:
    """What the registry shows of a model."""

    producer: str = ""
    opset: int = 0
    nodes: int = 0
    parameters: int = 0
    operators: dict[str, int] = field(default_factory=dict)
    inputs: list[Tensor] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)
    makers: dict[str, str] = field(default_factory=dict)  # output → the operator that makes it
    metadata: dict[str, str] = field(default_factory=dict)  # what its exporter wrote beside the graph


def inspect(path: Path) -> Summary:
    """Check the file and summarise it.

    Raises:
        RefusedModel: see the module's first lines.
    """
    if path.stat().st_size == 0:
        raise RefusedModel(_("The ONNX file is empty."))
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        view = memoryview(mapped)
        try:
            return _Reader(view).model()
        except Damaged as exc:
            raise RefusedModel(_("Not a valid ONNX file. %(why)s") % {"why": exc}) from None
        finally:
            view.release()


def _too_large() -> RefusedModel:
    return RefusedModel(_("A tensor of the model declares too many dimensions or values."))


def _is_known(name: str, scopes: Scopes) -> bool:
    return any(name in scope for scope in scopes)


class _Reader:
    def __init__(self, data: memoryview) -> None:
        self.data = data
        self.summary = Summary()
        self.fields = 0  # that were read
        self.makers: dict[str, str] = {}  # tensor → operator, of the outermost graph

    def model(self) -> Summary:
        graph: Span | None = None
        versions = 0
        functions: list[Span] = []
        for number, value in self._fields(0, len(self.data)):
            if number == 1 and isinstance(value, int):
                versions = value
            elif number == 2:
                self.summary.producer = text(self.data, value)
            elif number == 7 and not isinstance(value, int):
                graph = value
            elif number == 8 and not isinstance(value, int):
                self._opset(value)
            elif number == 14 and not isinstance(value, int):
                self._metadata(value)
            elif number == 25 and not isinstance(value, int):
                functions.append(value)
        if graph is None or not versions:
            raise Damaged(_("The file contains no graph."))
        self._graph(graph, (), depth=0)
        for function in functions:
            for number, value in self._fields(*function):
                if number == 7 and not isinstance(value, int):
                    self._node(value, None, depth=1, declared=True)
        return self.summary

    def _fields(self, begin: int, end: int) -> Iterator[tuple[int, int | Span]]:
        """Yield the fields of a message, as long as the file has not too many of them."""
        for entry in protobuf.fields(self.data, begin, end):
            self.fields += 1
            if self.fields > MAX_FIELDS:
                raise RefusedModel(_("The ONNX file has more than %(most)s fields.") % {"most": f"{MAX_FIELDS:,}"})
            yield entry

    def _opset(self, span: Span) -> None:
        domain, version = "", 0
        for number, value in self._fields(*span):
            if number == 1:
                domain = text(self.data, value)
            elif number == 2 and isinstance(value, int):
                version = value
        if domain in ("", "ai.onnx"):
            self.summary.opset = version

    def _metadata(self, span: Span) -> None:
        entry = {number: value for number, value in self._fields(*span) if not isinstance(value, int)}
        parts = [bytes(self.data[slice(*entry.get(number, (0, 0)))][:MAX_METADATA_BYTES]) for number in (1, 2)]
        if len(self.summary.metadata) < MAX_METADATA_ENTRIES:
            key, value = (part.decode(errors="replace") for part in parts)
            self.summary.metadata[key] = value

    def _graph(self, span: Span, outer: Scopes, *, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise RefusedModel(_("The graphs of the model are nested too deeply."))
        nodes: list[Span] = []
        inputs: list[Tensor] = []
        outputs: list[Tensor] = []
        weights: set[str] = set()
        for number, value in self._fields(*span):
            if isinstance(value, int):
                continue
            if number == 1:
                nodes.append(value)
            elif number == 5:
                weights.add(self._tensor(value))
            elif number == 11:
                inputs.append(self._value(value))
            elif number == 12:
                outputs.append(self._value(value))
            elif number == 15:
                weights |= self._sparse(value)
            if len(inputs) + len(outputs) > MAX_ENDS:
                raise RefusedModel(_("The model has more than %(most)s inputs and outputs.") % {"most": MAX_ENDS})
        own = weights | {tensor.name for tensor in inputs}
        scopes = (*outer, own)
        for node in nodes:
            own |= self._node(node, scopes, depth=depth)
        for tensor in outputs:
            if not _is_known(tensor.name, scopes):
                message = _("The model output “%(name)s” is not computed by any node.")
                raise RefusedModel(message % {"name": tensor.name})
        if depth == 0:
            self.summary.inputs = [tensor for tensor in inputs if tensor.name not in weights]
            self.summary.outputs = outputs
            self.summary.makers = {tensor.name: self.makers.get(tensor.name, "") for tensor in outputs}

    def _node(self, span: Span, scopes: Scopes | None, *, depth: int, declared: bool = False) -> set[str]:
        """Check a node and return the names it produces. `scopes` None: names are not checked (functions)."""
        self.summary.nodes += 1
        if self.summary.nodes > MAX_NODES:
            raise RefusedModel(_("The model has more than %(most)s nodes.") % {"most": f"{MAX_NODES:,}"})
        operator, domain = "", ""
        uses: list[str] = []
        makes: set[str] = set()
        attributes: list[Span] = []
        for number, value in self._fields(*span):
            if number == 1:
                uses.append(text(self.data, value))
            elif number == 2:
                makes.add(text(self.data, value))
            elif number == 4:
                operator = text(self.data, value)
            elif number == 7:
                domain = text(self.data, value)
            elif number == 5 and not isinstance(value, int):
                attributes.append(value)
        if domain not in KNOWN_DOMAINS and not declared and not domain.startswith("pkg."):
            message = _("The operator %(name)s comes from an external library; export without it.")
            raise RefusedModel(message % {"name": f"{domain}.{operator}"})
        if scopes is not None:
            for name in uses:
                if name and not _is_known(name, scopes):
                    message = _("A node uses “%(name)s” before it is computed; the graph is cyclic or truncated.")
                    raise RefusedModel(message % {"name": name})
        self.summary.operators[operator] = self.summary.operators.get(operator, 0) + 1
        if depth == 0:
            self.makers |= dict.fromkeys(makes, operator)
        for attribute in attributes:
            self._attribute(attribute, scopes or (), depth=depth)
        return makes

    def _attribute(self, span: Span, scopes: Scopes, *, depth: int) -> None:
        for number, value in self._fields(*span):
            if isinstance(value, int):
                continue
            if number in (5, 10):
                self._tensor(value)
            elif number in (6, 11):
                self._graph(value, scopes, depth=depth + 1)
            elif number in (22, 23):
                self._sparse(value)

    def _sparse(self, span: Span) -> set[str]:
        return {
            self._tensor(value)
            for number, value in self._fields(*span)
            if number in (1, 2) and not isinstance(value, int)
        }

    def _tensor(self, span: Span) -> str:
        """Check a weight, count its values and return its name."""
        name, element_type, location, data_bytes = "", 0, 0, 0
        shape: list[int] = []
        outside = False
        for number, value in self._fields(*span):
            if number == 1:
                shape += numbers(self.data, value, max_count=MAX_RANK)
                if len(shape) > MAX_RANK:
                    raise _too_large()
            elif number == 2 and isinstance(value, int):
                element_type = value
            elif number == 8:
                name = text(self.data, value)
            elif number == 13:
                outside = True
            elif number == 14 and isinstance(value, int):
                location = value
            elif not isinstance(value, int):
                data_bytes += value[1] - value[0]
        if outside or location:
            raise RefusedModel(
                _(
                    "The model stores weights in other files, which is not supported. Save it as one file "
                    "(onnx.save with save_as_external_data=False)."
                )
            )
        if any(size < 0 for size in shape):
            raise Damaged(_("A weight has a negative size."))
        try:
            count = count_values(shape)
        except ImpossibleShape:
            raise _too_large() from None
        if element_type in WIDTHS and element_type != 8 and count > max(8 * data_bytes, 8):
            message = _("The weight “%(name)s” declares %(count)s values, more than the file can contain.")
            raise RefusedModel(message % {"name": name, "count": f"{count:,}"})
        self.summary.parameters += count
        return name

    def _value(self, span: Span) -> Tensor:
        """ValueInfoProto: name and, of a tensor, its type and shape."""
        tensor = Tensor("")
        for number, value in self._fields(*span):
            if number == 1:
                tensor.name = text(self.data, value)
            elif number == 2 and not isinstance(value, int):
                for inner, kind in self._fields(*value):
                    if inner == 1 and not isinstance(kind, int):
                        self._type(kind, tensor)
        return tensor

    def _type(self, span: Span, tensor: Tensor) -> None:
        for number, value in self._fields(*span):
            if number == 1 and isinstance(value, int):
                tensor.element_type = value
            elif number == 2 and not isinstance(value, int):
                for inner, size in self._fields(*value):
                    if inner == 1 and not isinstance(size, int):
                        sizes = [v for n, v in self._fields(*size) if n == 1 and isinstance(v, int)][:1]
                        if len(tensor.shape) == MAX_RANK:
                            raise _too_large()
                        tensor.shape.append(sizes[0] if sizes and sizes[0] < 1 << 31 else -1)
