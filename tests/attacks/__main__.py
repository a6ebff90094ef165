"""Run every attack and say how many were refused: `python -m tests.attacks [A D05 …]`."""

from __future__ import annotations

import argparse
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.attacks.catalogue import CASES, NOT_YET, held_by


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.attacks", description=__doc__)
    parser.add_argument("cases", nargs="*", help="groups or ids, such as D or J05; all when left out")
    wanted = parser.parse_args().cases
    known = held_by()
    cases = [case for case in CASES if not wanted or any(case.startswith(part.upper()) for part in wanted)]
    nodes = [node for case in cases for node in known.get(case, [])]
    if not nodes:
        print("No case of that name.")
        return 2
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        # the marks' default selection leaves out chaos and browser tests; cases live there too
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-m", "not gpu", f"--junitxml={report}", *nodes]
        subprocess.run(command, check=False)
        results = _results(report)
    refused = 0
    for case in cases:
        mine = [results.get(node.rpartition("::")[2], "did not run") for node in known.get(case, [])]
        verdict = "not applicable" if case in NOT_YET else "no test" if not mine else _worst(mine)
        refused += verdict == "refused"
        print(f"{case}  {verdict:<15} {CASES[case]}" + (f" ({NOT_YET[case].why})" if case in NOT_YET else ""))
    applicable = len([case for case in cases if case not in NOT_YET])
    print(f"{applicable} cases, {refused} refused; {len(nodes)} tests, {len(cases) - applicable} cases not applicable")
    return 0 if refused == applicable else 1


def _results(report: Path) -> dict[str, str]:
    """Verdict by name of the test; of its parameters the worst counts."""
    found: dict[str, list[str]] = defaultdict(list)
    for case in ElementTree.parse(report).iter("testcase"):
        name = str(case.get("name")).partition("[")[0]
        tags = {child.tag for child in case}
        found[name].append(
            "NOT REFUSED" if tags & {"failure", "error"} else "skipped" if "skipped" in tags else "refused"
        )
    return {name: _worst(verdicts) for name, verdicts in found.items()}


def _worst(verdicts: list[str]) -> str:
    order = ["NOT REFUSED", "did not run", "refused", "skipped"]
    return min(verdicts, key=order.index)


if __name__ == "__main__":
    raise SystemExit(main())
