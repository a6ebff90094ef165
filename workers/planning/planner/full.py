"""Why a request waits that the free devices cannot take. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from workers.planning.planner.fit import Shape, Space
from workers.planning.planner.snapshot import FULL_CARD, Waiting, cards_of
from workers.planning.planner.windows import Openings

Reason = tuple[str, Mapping[str, int | float | str]]


def full_reason(
    job: Waiting, shape: Shape, space: Space, openings: Openings, possible: Callable[[Shape], bool]
) -> Reason:
    """Code and figures of the sentence.

    Args:
        possible: whether a shape fits machines on which nothing runs.
    """
    request = shape.request
    home = next((node for node in space.nodes if request.node == node.id != 0), None)
    closing = openings.closing(job.kind)
    if not possible(shape):
        if request.tiers and possible(space.shape(replace(request, tiers=None), job.kind)):
            return "no_such_tier", {"least": request.tiers[0], "most": request.tiers[1]}
        if closing is not None and possible(space.shape(request, None)):
            return "kept_group", {"group": closing[0].name}
        if home is not None:
            return "machine_too_small", {"node": home.name}
        return "no_machine", {"asked": shape.requested, "nodes": request.nodes}
    if home is not None:
        return "machine_full", {"node": home.name}
    if not request.gpus:
        capacities = [device.capacity for device in space.devices]
        free, total = (cards_of(space.largest_share(shape, amounts)) for amounts in (space.free, capacities))
        return "no_cpu", {"asked": cards_of(request.cpu_shares), "free": free, "total": total}
    if request.shares < FULL_CARD:
        return "no_share", {"asked": shape.wanted, "free": space.largest_share(shape, space.free)}
    free = space.free_cards(shape, space.free)
    if free < shape.requested:
        return "no_cards", {"asked": shape.requested, "free": free}
    best = space.best_node(shape, space.free)
    return "scattered", {"asked": request.gpus, "free": free, "best": best}
