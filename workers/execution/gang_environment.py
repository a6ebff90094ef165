"""What programs of a job on several machines are told of the network, and of how to start each other."""

from __future__ import annotations

import fcntl
import ipaddress
import socket
import struct
from pathlib import Path

from workers.execution.exec.peers import PROGRAM

_SIOCGIFADDR, _SIOCGIFNETMASK = 0x8915, 0x891B


def of(rank: int, address: str) -> dict[str, str]:
    """The variables of one rank.

    `PET_…` are torchrun's own names for its options. Nothing is guessed from host names: nodes may not know each
    other by name.

    Args:
        address: the node's own, as the others know it.
    """
    told = {
        "PET_RDZV_CONF": f"is_host={'true' if rank == 0 else 'false'}",
        "PET_LOCAL_ADDR": address,
    }
    interface = interface_of(address)
    if interface:
        told |= {"GLOO_SOCKET_IFNAME": interface, "NCCL_SOCKET_IFNAME": interface}
    return told | of_mpi(network_of(interface))


def of_mpi(network: str = "") -> dict[str, str]:
    """How mpirun starts programs on the other machines, whoever wrote it, and which network those use.

    Open MPI 4 reads `OMPI_MCA_…`, 5 `PRTE_MCA_…` too, MPICH and Intel MPI the others. Cores are not handed out by the
    platform, so two jobs whose processes were tied to the first ones would share them. Reading another process's
    memory, which is how Open MPI hands over long messages, takes rights that a job does not have.
    """
    told = {
        "OMPI_MCA_plm_rsh_agent": PROGRAM,
        "PRTE_MCA_plm_ssh_agent": PROGRAM,
        "HYDRA_LAUNCHER": "rsh",
        "HYDRA_LAUNCHER_EXEC": PROGRAM,
        "I_MPI_HYDRA_BOOTSTRAP": "rsh",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC": PROGRAM,
        "OMPI_ALLOW_RUN_AS_ROOT": "1",  # where the platform is root and has no other users: without any capability
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_ALLOW_RUN_AS_ROOT": "1",
        "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_hwloc_base_binding_policy": "none",
        "PRTE_MCA_hwloc_default_binding_policy": "none",
        "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
    }
    if network:
        told |= {"OMPI_MCA_btl_tcp_if_include": network, "OMPI_MCA_oob_tcp_if_include": network}
        told |= {"PRTE_MCA_prte_if_include": network}
    return told


def rdma_files(folder: Path = Path("/dev/infiniband")) -> list[str]:
    """Device files by which the ranks of a job use the machine's InfiniBand or RoCE cards; none where it has none.

    Each opens a context of its own there, so jobs stay apart as users of one network do.
    """
    return sorted(str(path) for path in folder.glob("*") if path.name == "rdma_cm" or path.name.startswith("uverbs"))


def interface_of(address: str) -> str:
    """Name of this machine's network interface with an IPv4 address; "" where there is none."""
    for _number, name in socket.if_nameindex():
        if _asked(name, _SIOCGIFADDR) == address:
            return name
    return ""


def network_of(interface: str) -> str:
    """The network of an interface, as "10.1.2.0/24"; "" without one."""
    address, mask = (_asked(interface, what) for what in (_SIOCGIFADDR, _SIOCGIFNETMASK))
    return str(ipaddress.ip_network(f"{address}/{mask}", strict=False)) if address and mask else ""


def _asked(interface: str, what: int) -> str:
    """An address that the kernel keeps of an interface; "" where it keeps none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            found = fcntl.ioctl(probe, what, struct.pack("256s", interface.encode()[:15]))
        except OSError:
            return ""
    return socket.inet_ntoa(found[20:24])
