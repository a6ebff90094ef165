"""A small vision transformer: Dosovitskiy et al. 2021, with fixed positions and mean pooling (Beyer et al. 2022)."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .net import Net

WIDTH, DEPTH, HEADS = 192, 6, 3
PATCHES = 12  # along the longer side, about


class Layer(nn.Module):
    """Patches look at each other, then each is worked on alone; both are added to what was known."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        """[N, patches, width] → the same shape."""
        count, patches, width = x.shape
        parts = self.qkv(self.norm1(x)).view(count, patches, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        looked = F.scaled_dot_product_attention(query, key, value)
        x = x + self.out(looked.transpose(1, 2).reshape(count, patches, width))
        return torch.as_tensor(x + self.mlp(self.norm2(x)))


class VisionTransformer(Net):
    """[N, channels, height, width] → logits [N, classes]; some 2.7 million weights."""

    def __init__(self, classes: int, channels: int, width: int, height: int) -> None:
        super().__init__()
        self.patch = max(2, round(max(width, height) / PATCHES))
        rows, columns = math.ceil(height / self.patch), math.ceil(width / self.patch)
        self.pad = (0, columns * self.patch - width, 0, rows * self.patch - height)
        self.embed = nn.Conv2d(channels, WIDTH, self.patch, self.patch)
        self.register_buffer("positions", positions(rows, columns, WIDTH), persistent=False)
        self.layers = nn.ModuleList(Layer(WIDTH, HEADS) for _ in range(DEPTH))
        self.norm = nn.LayerNorm(WIDTH)
        self.fc = nn.Linear(WIDTH, classes)

    def stages(self) -> list[list[nn.Module]]:
        return [[self.embed], *([layer] for layer in self.layers), [self.norm]]

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(F.pad(x, self.pad)).flatten(2).transpose(1, 2) + self.positions
        for layer in self.layers:
            x = layer(x)
        return torch.as_tensor(self.fc(self.norm(x).mean(1)))


def positions(rows: int, columns: int, width: int) -> Tensor:
    """Return sines and cosines of row and column at falling frequencies: [rows · columns, width]."""
    rates = 10_000 ** -torch.linspace(0, 1, width // 4)
    line, column = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
    angles = [coordinate.reshape(-1, 1).float() * rates for coordinate in (line, column)]
    return torch.cat([wave(angle) for angle in angles for wave in (torch.sin, torch.cos)], 1)
