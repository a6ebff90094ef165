"""The network that finds keypoints, its loss, and how its maps are read."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .segmenter import Segmenter

STRIDE = 4  # input pixels to one cell of a map
SPREAD = 1.0  # cells: of the bump that a map should show
PEAK_RADIUS_CELLS = 3.0  # cells around the highest one that say where a point is


class Answering(nn.Module):
    """The network as it is exported: points [N, K, 3] as x, y in input pixels and score 0..1, and classes [N, C].

    Classes are probabilities. A score says how sure it is that the point can be told at all.
    """

    def __init__(self, model: Segmenter, points: int) -> None:
        super().__init__()
        self.model, self.points = model, points

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        maps, evidence, classes = parted(self.model(x), self.points)
        chances, grid = spread(maps), cells(maps)
        peak = grid[chances.argmax(2)]  # [N, K, 2]
        near = ((grid - peak[:, :, None]).abs().amax(3) <= PEAK_RADIUS_CELLS * STRIDE).float() * chances
        places = (near / near.sum(2, keepdim=True)) @ grid
        score = (chances * evidence.flatten(2)).sum(2).sigmoid()
        return torch.cat([places, score[..., None]], 2), classes.softmax(1)


def channels(points: int, classes: int) -> int:
    """Channels of the network: two maps for each point, one for each class."""
    return 2 * points + classes


def parted(output: Tensor, points: int) -> tuple[Tensor, Tensor, Tensor]:
    """Maps of where each point is, of whether it is there [N, K, h, w], and logits of the classes [N, C]."""
    return output[:, :points], output[:, points : 2 * points], output[:, 2 * points :].mean((2, 3))


def spread(maps: Tensor) -> Tensor:
    """How likely each point is in each cell [N, K, h·w]."""
    return maps.flatten(2).softmax(2)


def cells(maps: Tensor) -> Tensor:
    """Centres of the cells in input pixels [h·w, 2]."""
    rows, columns = (torch.arange(side, device=maps.device) for side in maps.shape[-2:])
    y, x = torch.meshgrid(rows, columns, indexing="ij")
    return (torch.stack([x, y], -1).reshape(-1, 2).float() + 0.5) * STRIDE


def losses(
    output: Tensor, points: Tensor, labeled: Tensor, own: Tensor, kinds: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the losses of bump, position, presence and class, each the mean over the objects.

    The bump is a cross-entropy with a normal distribution around the point; the place is the mean of the map, as in
    integral regression (Sun et al. 2018), and its distance is counted in cells; presence is asked of the points of
    the object's own class alone.

    Args:
        points: [N, K, 2] in input pixels.
        labeled, own: which points are labeled, and which belong to the object's class [N, K].
        kinds: classes [N].
    """
    maps, evidence, classes = parted(output.float(), points.shape[1])
    grid = cells(maps)
    logs = F.log_softmax(maps.flatten(2), 2)
    chances = logs.exp()
    distance = (grid - points[:, :, None]).square().sum(3) / (SPREAD * STRIDE) ** 2
    wanted = torch.softmax(-distance / 2, 2)
    bump = -(wanted * logs).sum(2)
    with torch.autocast(output.device.type, enabled=False):  # bfloat16 has no pixel between 188 and 189
        places = chances @ grid
    offset = (places - points).abs().sum(2) / STRIDE
    presence = (chances.detach() * evidence.flatten(2)).sum(2)
    there = F.binary_cross_entropy_with_logits(presence, labeled.float(), reduction="none")
    named = F.cross_entropy(classes, kinds)
    return _mean(bump, labeled), _mean(offset, labeled), _mean(there, own), named


def _mean(values: Tensor, counted: Tensor) -> Tensor:
    """Mean over the objects of the mean over what is counted of each."""
    return ((values * counted).sum(1) / counted.sum(1).clamp(min=1)).mean()
