"""What all classifiers have in common: stages, the first of which may be frozen."""

from __future__ import annotations

from torch import nn


class Net(nn.Module):
    """A classifier of images [N, C, H, W] → logits [N, classes], its last layer named `fc`."""

    frozen: int = 0  # so many first stages do not learn

    def stages(self) -> list[list[nn.Module]]:
        """The layers before the last one, in the order in which they see an image."""
        raise NotImplementedError

    def freeze(self, stages: int) -> None:
        """Let the first stages keep their weights, and their batch norms the statistics.

        Args:
            stages: how many; at most as many as there are, which leaves the last layer to learn.
        """
        self.frozen = min(stages, len(self.stages()))
        for layer in self._frozen_layers():
            layer.requires_grad_(requires_grad=False)

    def train(self, mode: bool = True) -> Net:
        super().train(mode)
        for layer in self._frozen_layers():
            layer.eval()
        return self

    def _frozen_layers(self) -> list[nn.Module]:
        return [layer for stage in self.stages()[: self.frozen] for layer in stage] if self.frozen else []
