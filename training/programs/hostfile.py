"""Host files of a job on several machines, for launchers such as mpirun, deepspeed and horovodrun."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from workers.core.runs import RunDir


@dataclass(frozen=True)
class HostFiles:
    """The same machines in the two ways that launchers read them."""

    hosts: Path  # "10.0.0.1 slots=2": Open MPI, deepspeed
    machines: Path  # "10.0.0.1:2": MPICH, Intel MPI, horovodrun


def write(run: RunDir, addresses: Sequence[str], slots: int) -> HostFiles:
    """Write them into the run directory, which a job reads and cannot change.

    Args:
        addresses: of the machines, by rank.
        slots: processes on each.
    """
    files = HostFiles(run.path / "hostfile", run.path / "machinefile")
    files.hosts.write_text("".join(f"{address} slots={slots}\n" for address in addresses), encoding="utf-8")
    files.machines.write_text("".join(f"{address}:{slots}\n" for address in addresses), encoding="utf-8")
    for path in (files.hosts, files.machines):
        path.chmod(0o644)
    return files


def variables(files: HostFiles) -> dict[str, str]:
    """Return the variables for programs: with them, a plain `mpirun ./program` uses all slots of all nodes."""
    return {
        "AIP_HOSTFILE": str(files.hosts),
        "OMPI_MCA_orte_default_hostfile": str(files.hosts),
        "PRTE_MCA_prte_default_hostfile": str(files.hosts),
        "HYDRA_HOST_FILE": str(files.machines),
        "I_MPI_HYDRA_HOST_FILE": str(files.machines),
    }
