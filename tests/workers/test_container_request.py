"""Sandbox tier 4: what a container engine is asked for, as plain data."""

import pytest

from workers.supervisor import container
from workers.supervisor.ticket import Ticket

RWM = {"CgroupPermissions": "rwm"}


def test_container_request_gives_away_nothing(tmp_path):
    for name in ("data", "outputs", "tmp"):
        (tmp_path / name).mkdir()
    ticket = Ticket(
        job=7, attempt=2, argv=["python3", "-V"], env={"A": "b=c"}, cwd="/", tier=4, uid=200_001, processes=64,
        cpus_most=1.5, memory_bytes=1 << 30, read_only=[str(tmp_path), str(tmp_path / "data"), "/no/such"],
        read_write=[str(tmp_path / "outputs")], tmp=str(tmp_path / "tmp"), rlimits={"CORE": 0},
        container={"engine": "/e", "image": "lab/torch:1", "user": "200001:200001", "network": "none", "root": "/d"},
    )  # fmt: skip

    asked = container.describe(ticket, str(tmp_path), {"pid": 5, "start_ticks": 6, "boot_id": "b"})

    host = asked["HostConfig"]
    assert (host["CapDrop"], host["SecurityOpt"], host["NetworkMode"]) == (["ALL"], ["no-new-privileges"], "none")
    assert (host["ReadonlyRootfs"], host["Privileged"], host["Init"]) == (True, False, True)
    assert (host["PidsLimit"], host["Memory"], host["MemorySwap"]) == (64, 1 << 30, 1 << 30)
    assert host["CpuQuota"] / host["CpuPeriod"] == 1.5
    assert not {"Devices", "DeviceRequests"} & set(host)
    assert {(m["Target"], m["ReadOnly"]) for m in host["Mounts"]} == {
        (str(tmp_path), True), (str(tmp_path / "data"), True), (str(tmp_path / "outputs"), False),
        (str(tmp_path / "log.txt"), False), ("/tmp", False),
    }  # fmt: skip
    assert (asked["User"], asked["Env"], asked["Cmd"]) == ("200001:200001", ["A=b=c"], ["python3", "-V"])
    assert asked["Labels"]["aip.job"] == "7/2/0"


@pytest.mark.parametrize(
    ("way", "expected"),
    [
        ("request", {"DeviceRequests": [{"Driver": "nvidia", "DeviceIDs": ["GPU-a"], "Capabilities": [["gpu"]]}]}),
        ("files", {"Devices": [dict.fromkeys(("PathOnHost", "PathInContainer"), "/dev/null") | RWM]}),
    ],
)  # fmt: skip
def test_container_request_has_the_cards_of_its_job_and_no_others(tmp_path, way, expected):
    ticket = Ticket(
        job=1, attempt=1, argv=["x"], env={"CUDA_VISIBLE_DEVICES": "GPU-a"}, cwd="/", tier=4,
        devices=["/dev/null", "/dev/nvidia-not-there"], container={"image": "i", "user": "1:1", "cards": way},
    )  # fmt: skip

    host = container.describe(ticket, str(tmp_path), {"pid": 5, "start_ticks": 6, "boot_id": "b"})["HostConfig"]

    assert {key: value for key, value in host.items() if key.startswith("Device")} == expected
