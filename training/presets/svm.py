"""Linear support vector machines, one for each class, and scores from their margins."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from scipy.optimize import OptimizeResult, minimize
from torch import Tensor

TOLERANCE = 1e-5  # relative change of the loss in an iteration at which learning has ended


def squared_hinge(margins: Tensor, signs: Tensor) -> Tensor:
    """Mean over the examples of the squared hinge loss of all machines.

    Args:
        margins: [N, classes]; signs: the same shape, 1 for what a machine shall find, -1 for what it shall not, 0 for
            what it does not learn from.
    """
    return (signs.abs() * (1 - signs * margins).clamp(min=0).square()).sum(1).mean()


def signs_of(labels: Tensor, classes: int) -> Tensor:
    """One against the rest [N, classes], from labels [N]."""
    return 2 * F.one_hot(labels, classes).float() - 1


def learn(
    features: Tensor, signs: Tensor, *, cost: float, iterations: int, on_iteration: Callable[[int, float], None]
) -> tuple[Tensor, Tensor, float, int]:
    """Fit classifiers with squared hinge loss and a wide margin, all at once by L-BFGS.

    Args:
        features: [N, values]; signs: [N, classes], see `squared_hinge`.
        cost: what an error costs, beside the width of the margin.
        on_iteration: called after each iteration with its number and the loss.

    Returns:
        weights [classes, values], bias [classes], the last loss, the iterations it took.
    """
    shape = (signs.shape[1], features.shape[1] + 1)
    pull = 1 / (2 * cost * len(features))
    losses: list[float] = []

    def loss_of(values: np.ndarray) -> tuple[float, np.ndarray]:
        both = torch.from_numpy(values).view(shape).float().requires_grad_()
        weights, bias = both[:, :-1], both[:, -1]
        loss = squared_hinge(features @ weights.T + bias, signs) + pull * weights.square().sum()
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        gradient = both.grad
        assert gradient is not None
        return loss.item(), gradient.double().numpy().ravel()

    def each(intermediate_result: OptimizeResult) -> None:
        losses.append(float(intermediate_result.fun))
        on_iteration(len(losses), losses[-1])

    solution = minimize(
        loss_of, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B", callback=each,
        options={"maxiter": iterations, "maxcor": 20, "ftol": TOLERANCE, "gtol": 0.0},
    )  # fmt: skip
    both = torch.from_numpy(solution.x).view(shape).float()
    return both[:, :-1], both[:, -1], float(solution.fun), len(losses)


def scale_of(margins: Tensor, labels: Tensor) -> float:
    """By what margins are multiplied for their softmax to be most like the truth (temperature: Guo et al. 2017).

    Args:
        margins: [N, classes] of examples that the machines did not learn from: those they know are too far away.
    """
    log_scale = torch.zeros(1, requires_grad=True)
    _minimized([log_scale], lambda: F.cross_entropy(margins * log_scale.exp(), labels))
    return float(log_scale.detach().exp())


def sigmoid_of(margins: Tensor, right: Tensor) -> tuple[float, float]:
    """Slope and shift whose sigmoid says best how likely a margin [N] is right [N] (Platt 1999, with his prior).

    The slope is never negative: a higher margin is never less likely.
    """
    good, bad = int(right.sum()), int((~right).sum())
    targets = torch.where(right, (good + 1) / (good + 2), 1 / (bad + 2))
    log_slope, shift = torch.zeros(1, requires_grad=True), torch.zeros(1, requires_grad=True)
    _minimized(
        [log_slope, shift],
        lambda: F.binary_cross_entropy_with_logits(margins * log_slope.exp() + shift, targets),
    )
    return float(log_slope.detach().exp()), float(shift.detach())


def _minimized(values: list[Tensor], loss_of: Callable[[], Tensor]) -> None:
    optimizer = torch.optim.LBFGS(values, max_iter=50, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        return loss

    optimizer.step(closure)  # type: ignore[no-untyped-call]  # torch leaves it untyped
