"""Which cards have a fast way to each other. Pure."""

from collections.abc import Sequence


def groups(buses: Sequence[str], linked: Sequence[Sequence[str]], numa: Sequence[int]) -> list[int]:
    """Group of each card: cards joined by NVLink, directly or over a switch; without links, by NUMA node.

    Args:
        buses: PCI bus id of each card.
        linked: bus ids at the other ends of each card's links; an id that is no card's is a switch.
        numa: NUMA node of each card, which tells where no card has links.
    """
    if not any(linked):
        return list(numa)
    parents = list(range(len(buses)))

    def top(card: int) -> int:
        while parents[card] != card:
            card = parents[card]
        return card

    first_at: dict[str, int] = {bus.lower(): card for card, bus in enumerate(buses)}
    for card, ends in enumerate(linked):
        for end in ends:
            other = first_at.setdefault(end.lower(), card)
            parents[top(card)] = parents[top(other)] = min(top(card), top(other))
    order = {root: number for number, root in enumerate(dict.fromkeys(top(card) for card in range(len(buses))))}
    return [order[top(card)] for card in range(len(buses))]
