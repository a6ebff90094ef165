"""A box below a platform that is an ordinary user: tier 2 in a user namespace of its own, and the system's Python."""

from __future__ import annotations

import ensurepip
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.images.wheels import wheel
from tests.running import wait_for
from workers.images.store import archive
from workers.supervisor import records, tiers
from workers.supervisor.ticket import Ticket

NOBODY = 65_534
PYTHON = "/usr/bin/python3"
MAIN = Path(records.__file__).with_name("__main__.py")
PIP = next(Path(ensurepip.__file__).parent.glob("_bundled/pip-*.whl"))
LOOK = "import venv, sys; print(sys.version_info >= (3, 11))"


def usable() -> str:
    """Why this cannot be tried here; "" where it can."""
    if os.geteuid() != 0 or not tiers.bwraps():
        return "needs root to become somebody else, and bubblewrap"
    look = [PYTHON, "-c", LOOK] if os.access(PYTHON, os.X_OK) else ["true"]
    if b"True" not in subprocess.run(look, capture_output=True, check=False).stdout:
        return "needs a Python of the system"
    try:
        argv = [tiers.bwraps()[-1], "--ro-bind", "/", "/", "true"]
        done = subprocess.run(argv, user=NOBODY, group=NOBODY, extra_groups=[], capture_output=True, check=False)
    except OSError as exc:
        return str(exc)
    return done.stderr.decode() if done.returncode else ""


pytestmark = pytest.mark.skipif(bool(usable()), reason=usable() or "-")


@pytest.fixture
def ground():
    folder = Path(tempfile.mkdtemp(prefix="aip-ordinary-"))
    folder.chmod(0o755)
    shutil.copy(PIP, folder / PIP.name)
    for version in ("1.0", "2.0"):
        wheel(folder / "wheels", "ring", version)
    subprocess.run(["chmod", "-R", "a+rX", str(folder)], check=True)
    for name in ("engine", "run/code", "run/tmp", "box/upper", "box/work"):
        (folder / name).mkdir(parents=True)
    for path in (
        folder / "engine",
        folder / "run",
        folder / "box",
        *(folder / "run").iterdir(),
        *(folder / "box").iterdir(),
    ):
        os.chown(path, NOBODY, NOBODY)
    yield folder
    subprocess.run(["chmod", "-R", "u+rwX", str(folder)], check=True)
    shutil.rmtree(folder)


def as_nobody(argv: list[str]) -> None:
    subprocess.run(argv, user=NOBODY, group=NOBODY, extra_groups=[], check=True, env={"PATH": "/usr/bin:/bin"}, cwd="/")


def test_box_of_an_ordinary_user_takes_installs_upgrades_and_removals(ground):
    engine, run, box = ground / "engine", ground / "run", ground / "box"
    pip = f"python {ground / PIP.name}/pip -q --disable-pip-version-check"
    install = f"{pip} install --no-index --no-deps --find-links {ground / 'wheels'}"
    as_nobody([PYTHON, "-m", "venv", "--without-pip", str(engine)])
    as_nobody(["/bin/sh", "-ec", f"PATH={engine}/bin:$PATH; {install} ring==1.0"])
    before = sorted(path.name for path in engine.glob("lib/python3*/site-packages/*"))
    script = f"ring; {install} ring==2.0; ring; {pip} uninstall -y ring; python -c 'import ring' 2>&1 | tail -1; id -u"
    ticket = Ticket(
        job=1, attempt=1, argv=["/bin/sh", "-ec", script], cwd=str(run / "code"), tier=2, bwrap=tiers.bwraps()[-1],
        env={"PATH": f"{engine}/bin:/usr/bin:/bin", "HOME": "/tmp"}, tmp=str(run / "tmp"), read_only=[str(ground)],
        overlay={"target": str(engine), "layers": [str(engine)], "upper": f"{box}/upper", "work": f"{box}/work"},
    )  # fmt: skip
    (run / records.LAUNCH).write_text(json.dumps(ticket.to_json()))

    as_nobody([PYTHON, "-I", "-S", str(MAIN), str(run)])
    record = wait_for(lambda: records.read(run / records.EXIT), 90)

    said = (run / records.LOG).read_text()
    assert record["code"] == 0, said
    assert said.splitlines() == [
        "ring 1.0", "ring 2.0", "ModuleNotFoundError: No module named 'ring'", str(NOBODY),
    ]  # fmt: skip
    assert sorted(path.name for path in engine.glob("lib/python3*/site-packages/*")) == before
    assert archive.measure(box / "upper").files > 0
