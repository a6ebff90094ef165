"""Kill processes of a running platform at random and see whether anything is lost.

    python -m tests.chaos --kills 60 [--seed N] [--keep]
    python -m tests.chaos --nodes 3 [--only CHAPTER | --kills N]      whole machines, cables, database; needs root

Ends with 0 when every rule held; prints the seed, what was killed, how fast, and each broken rule.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.running import environment


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=None, help="default 60; of whole machines: all chapters instead")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--pause", type=float, default=1.0, help="mean seconds between two kills")
    parser.add_argument("--nodes", type=int, default=1, choices=[1, 3], help="3: whole machines, see tests/nodes.py")
    parser.add_argument(
        "--only", action="append", default=[], metavar="CHAPTER", help="of whole machines: this chapter"
    )
    parser.add_argument(
        "--true-times", action="store_true", help="with --only agent_stopped, slow_line, …: the product's own times"
    )
    parser.add_argument("--keep", action="store_true", help="keep the folder even when all rules held")
    options = parser.parse_args(argv)
    root = Path(tempfile.mkdtemp(prefix="aip-chaos-"))
    if options.nodes > 1:
        from tests.chaos import storm

        print(f"chaos: {options.nodes} machines, seed {options.seed}, folder {root}", flush=True)
        asked = {"kills": options.kills, "seed": options.seed, "keep": options.keep}
        return storm.main(root, **asked, only=(*options.only,), true=options.true_times)
    os.environ.update(environment(root, gpus=2))

    import django

    django.setup()
    from tests.chaos.run import run

    kills = 60 if options.kills is None else options.kills
    print(f"chaos: seed {options.seed}, {kills} kills, folder {root}", flush=True)
    begun = time.monotonic()
    report = run(root, kills=kills, seed=options.seed, pause_s=options.pause)
    print(f"  jobs {report.jobs}, attempts {report.attempts}, ended {json.dumps(report.states)}")
    print(f"  killed {json.dumps(report.killed)} in {report.killing_s:.0f} s; {report.log_lines} log lines compared")
    print(f"  all jobs ended {report.settling_s:.1f} s after the last kill; total {time.monotonic() - begun:.0f} s")
    for rule in ("lost", "wrong", "twice", "lines", "silent", "orphans", "leases"):
        broken = report.findings.broken.get(rule, [])
        print(f"  {rule:<8} {len(broken)}")
        for text in broken[:10]:
            print(f"           {text}")
    if report.findings.broken or options.keep:
        print(f"  kept: {root}")
        return 1 if report.findings.broken else 0
    shutil.rmtree(root, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
