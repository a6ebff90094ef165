"""What the programs of an image need of a machine: a driver for their CUDA, and a kind of processor. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

#: The oldest driver under which programs of a CUDA release run, by its major number: NVIDIA's minor version
#: compatibility. Of older releases nothing is said, and nothing refused.
OLDEST_DRIVERS: dict[int, int] = {11: 450, 12: 525, 13: 580}

SAME_PROCESSOR = {"amd64": "x86_64", "arm64": "aarch64"}


@dataclass(frozen=True, slots=True)
class Needs:
    """What is needed. `cuda` is 12040 for CUDA 12.4, 0 for none; `arch` is "" where any processor will do."""

    cuda: int = 0
    arch: str = ""

    @property
    def driver(self) -> int:
        """The oldest driver that will do, by its major number; 0: any, or none."""
        major = self.cuda // 1000
        return OLDEST_DRIVERS.get(major, 0) if major <= max(OLDEST_DRIVERS) else OLDEST_DRIVERS[max(OLDEST_DRIVERS)]

    @property
    def cuda_words(self) -> str:
        return f"{self.cuda // 1000}.{self.cuda % 1000 // 10}"

    def as_row(self) -> dict[str, int | str]:
        """As a job keeps it; {} for nothing."""
        return {name: value for name, value in (("cuda", self.cuda), ("arch", self.arch)) if value}


NOTHING = Needs()


def of_row(row: Mapping[str, object]) -> Needs:
    """The needs that a job keeps."""
    cuda, arch = row.get("cuda", 0), row.get("arch", "")
    return Needs(cuda if isinstance(cuda, int) else 0, arch if isinstance(arch, str) else "")


def of_facts(facts: Mapping[str, object]) -> Needs:
    """The needs of an engine, by what its builder found: {"cuda": "12.4", "machine": "x86_64"}."""
    return Needs(cuda_number(str(facts.get("cuda") or "")), processor(str(facts.get("machine") or "")))


def cuda_number(text: str) -> int:
    """12040 for "12.4"; 0 for what is no version."""
    match = re.match(r"(\d{1,3})\.(\d{1,2})", text)
    return int(match.group(1)) * 1000 + int(match.group(2)) * 10 if match else 0


def driver_number(text: str) -> int:
    """470 for "470.82.01"; 0 without a driver, or if it is unknown."""
    match = re.match(r"\d{2,4}", text)
    return int(match.group()) if match else 0


def processor(name: str) -> str:
    """One name for each kind of processor."""
    return SAME_PROCESSOR.get(name, name)


def fits(needs: Needs, *, driver: int, arch: str, cards: bool) -> bool:
    """Whether a node has what is needed; an unknown property counts as present.

    Args:
        driver: its major number, 0 where nobody knows.
        cards: whether the program is to use a card; on the processor no driver is needed.
    """
    if needs.arch and arch and needs.arch != arch:
        return False
    return not (cards and driver and needs.driver > driver)
