"""The embedder's network, its loss, and how well like lies near like."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .net import Net

AT_ONCE = 500  # images whose neighbours are sought at a time
VOTES = 10  # of the nearest known images, when a class is named


class Embedder(nn.Module):
    """[N, C, H, W] → unit vectors [N, D], and their cosines with the centre of each class [N, classes]."""

    def __init__(self, net: Net, *, dimensions: int, classes: int) -> None:
        super().__init__()
        self.net = net
        self.centres = nn.Parameter(torch.randn(classes, dimensions))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        vectors = F.normalize(self.net(x).float())
        with torch.autocast(x.device.type, enabled=False):  # in bfloat16 near angles are one and the same
            return vectors, vectors @ F.normalize(self.centres).T


class Whitening(nn.Module):
    """Unit vectors [N, D] → unit vectors, of which directions with little variance count for more.

    ArcFace leaves as many directions as classes with nearly all variance: neighbours are then of the likeliest class,
    and what else makes two images alike is in the other directions. This is PCA whitening as in image retrieval (Jégou
    and Chum 2012), by the variance to the power of `-share / 2`.

    Args:
        vectors: that mean and variance are of, whatever their number: the covariance is shrunk as far as it is unsure
            (OAS, Chen et al. 2010).
        share: 1 makes all directions vary alike.
    """

    def __init__(self, vectors: Tensor, share: float) -> None:
        super().__init__()
        count, dimensions = vectors.shape
        mean = vectors.mean(0)
        apart = (vectors - mean).double()
        covariance = apart.T @ apart / count
        squares, square = covariance.square().sum(), covariance.trace() ** 2
        unsure = (1 - 2 / dimensions) * squares + square
        sure = (count + 1 - 2 / dimensions) * (squares - square / dimensions)
        shrunk = float((unsure / sure.clamp(min=1e-12)).clamp(max=1))
        even = covariance.trace() / dimensions * torch.eye(dimensions, dtype=torch.float64)
        variance, axes = torch.linalg.eigh((1 - shrunk) * covariance + shrunk * even)
        stretched = variance.clamp(min=1e-12) ** (-share / 2)  # vectors that are all alike have no variance
        self.register_buffer("mean", mean)
        self.register_buffer("turn", (axes * stretched @ axes.T).float())

    def forward(self, vectors: Tensor) -> Tensor:
        return F.normalize((vectors - self.get_buffer("mean")) @ self.get_buffer("turn"))


class Answering(nn.Module):
    """The embedder as it is exported: unit vectors [N, D] and their cosines with those of the known images [N, M].

    Args:
        known: vectors of the known images, whitened.
        whitening: Whitening, or Identity.
    """

    def __init__(self, model: Embedder, gallery: Tensor, whitening: nn.Module, *, mirror: bool) -> None:
        super().__init__()
        self.model, self.whitening, self.mirror = model, whitening, mirror
        self.register_buffer("known", gallery)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        vectors = self.whitening(vectors_of(self.model.net, x, mirror=self.mirror))
        return vectors, vectors @ self.get_buffer("known").T


def vectors_of(net: nn.Module, x: Tensor, *, mirror: bool) -> Tensor:
    """Images [N, C, H, W] as unit vectors [N, D].

    Args:
        mirror: the direction between that of an image and that of its mirror image.
    """
    vectors = F.normalize(net(x).float())
    return F.normalize(vectors + F.normalize(net(x.flip(-1)).float())) if mirror else vectors


def arcface(cosines: Tensor, classes: Tensor, *, margin: float, scale: float) -> Tensor:
    """ArcFace (Deng et al. 2019): cross-entropy of scaled cosines, the angle to one's own class made larger first.

    Args:
        margin: radians added to the angle; beyond π the cosine goes on falling as a line.
    """
    cosines = cosines.float()  # the bounds of the next line are 1 in bfloat16, where the angle has no gradient
    own = cosines.gather(1, classes[:, None]).clamp(-1 + 1e-6, 1 - 1e-6)
    turned = torch.cos(own.acos() + margin)
    turned = torch.where(own > -math.cos(margin), turned, own - margin * math.sin(margin))
    return F.cross_entropy(scale * cosines.scatter(1, classes[:, None], turned), classes)


def figures(vectors: Tensor, classes: Tensor) -> dict[str, float]:
    """Return how often the nearest neighbours share the class: Recall@1, Recall@5, MAP@R (Musgrave et al. 2020).

    Images that are alone in their class are sought by nobody and seek nobody.

    Args:
        vectors, classes: [N, D] unit vectors, and [N].
    """
    counts = torch.bincount(classes)[classes] - 1
    largest_count = int(counts.max())
    if largest_count < 1:
        return {"recall_1": 0.0, "recall_5": 0.0, "map_r": 0.0}
    first, five, precise = [], [], []
    for start in range(0, len(vectors), AT_ONCE):
        rows = torch.arange(start, min(start + AT_ONCE, len(vectors)))
        cosines = vectors[rows] @ vectors.T
        cosines[torch.arange(len(rows)), rows] = -2.0
        near = cosines.topk(min(max(largest_count, 5), len(vectors) - 1), 1).indices
        right = classes[near] == classes[rows, None]
        own = counts[rows]
        within = torch.arange(near.shape[1]) < own[:, None]
        precision = right.cumsum(1) / torch.arange(1, near.shape[1] + 1)
        first.append(right[own > 0, 0])
        five.append(right[own > 0, :5].any(1))
        precise.append(((precision * (right & within)).sum(1) / own.clamp(min=1))[own > 0])
    means = (torch.cat(part).float().mean() for part in (first, five, precise))
    return dict(zip(("recall_1", "recall_5", "map_r"), (float(mean) for mean in means), strict=True))


def named(cosines: Tensor, classes: Tensor, count: int) -> Tensor:
    """The class of most weight among the nearest known images [N]; a nearer one weighs more, as by the server.

    Args:
        cosines: [N, M] with the known images, whose classes are `classes` [M] of `count`.
    """
    near = cosines.topk(min(VOTES, cosines.shape[1]), 1)
    votes = torch.zeros(len(cosines), count).scatter_add(1, classes[near.indices], near.values.clamp(min=0))
    return votes.argmax(1)


def spread(classes: list[int], max_images: int) -> list[int]:
    """Return the indices of at most `max_images` images, spread over the classes as evenly as possible.

    Args:
        max_images: at least the number of classes, so that each has one.
    """
    own: dict[int, list[int]] = {}
    for index, label in enumerate(classes):
        own.setdefault(label, []).append(index)
    chosen: list[int] = []
    left = max_images
    for number, places in enumerate(sorted(own.values(), key=len)):
        share = min(len(places), left // (len(own) - number))
        chosen += [places[step * len(places) // share] for step in range(share)]
        left -= share
    return sorted(chosen)
