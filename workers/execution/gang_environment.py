"""What programs of a job on several machines are told of the network, and of how to start each other."""

from __future__ import annotations

import fcntl
import ipaddress
import socket
import struct
from pathlib import Path

from workers.execution.exec.peers import PROGRAM

_SIOCGIFADDR, _SIOCGIFNETMASK = 0x8915, 0x891B


def for_rank(rank: int, address: str) -> dict[str, str]:
    """Return the environment variables of one rank.

    `PET_…` are torchrun's own names for its options. Nothing is guessed from host names: nodes may not know each
    other by name.

    Args:
        address: the node's own, as the others know it.
    """
    variables = {
        "PET_RDZV_CONF": f"is_host={'true' if rank == 0 else 'false'}",
        "PET_LOCAL_ADDR": address,
    }
    interface = interface_of(address)
    if interface:
        variables |= {"GLOO_SOCKET_IFNAME": interface, "NCCL_SOCKET_IFNAME": interface}
    return variables | for_mpi(network_of(interface))


def for_mpi(network: str = "") -> dict[str, str]:
    """Variables that tell any mpirun how to start programs on the other nodes, and which network to use.

    Open MPI 4 reads `OMPI_MCA_…`, 5 `PRTE_MCA_…` too, MPICH and Intel MPI the others. Cores are not handed out by the
    platform, so two jobs whose processes were tied to the first ones would share them. Reading another process's
    memory, which is how Open MPI hands over long messages, takes rights that a job does not have.
    """
    variables = {
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
        variables |= {"OMPI_MCA_btl_tcp_if_include": network, "OMPI_MCA_oob_tcp_if_include": network}
        variables |= {"PRTE_MCA_prte_if_include": network}
    return variables


def rdma_files(folder: Path = Path("/dev/infiniband")) -> list[str]:
    """Device files by which the ranks of a job use the machine's InfiniBand or RoCE cards; none where it has none.

    Each opens a context of its own there, so jobs stay apart as users of one network do.
    """
    return sorted(str(path) for path in folder.glob("*") if path.name == "rdma_cm" or path.name.startswith("uverbs"))


def interface_of(address: str) -> str:
    """Name of this machine's network interface with an IPv4 address; "" where there is none."""
    for _number, name in socket.if_nameindex():
        if _interface_address(name, _SIOCGIFADDR) == address:
            return name
    return ""


def network_of(interface: str) -> str:
    """The network of an interface, as "10.1.2.0/24"; "" without one."""
    address, mask = (_interface_address(interface, what) for what in (_SIOCGIFADDR, _SIOCGIFNETMASK))
    return str(ipaddress.ip_network(f"{address}/{mask}", strict=False)) if address and mask else ""


def _interface_address(interface: str, request: int) -> str:
    """Read an address of an interface from the kernel; "" without one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            reply = fcntl.ioctl(probe, request, struct.pack("256s", interface.encode()[:15]))
        except OSError:
            return ""
    return socket.inet_ntoa(reply[20:24])
