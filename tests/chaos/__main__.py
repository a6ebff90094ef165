"""Kill processes of a running platform at random and see whether anything is lost.

    python -m tests.chaos --kills 60 [--seed N] [--keep]
    python -m tests.chaos --kills 1000 --seconds 2100 --people 60 --viewers 200 [--hog 2] [--json FILE]
    python -m tests.chaos --nodes 3 [--only CHAPTER | --kills N]      whole machines, cables, database; needs root

Ends with 0 when every rule held; prints the seed, what was killed, how fast, and each broken rule.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.chaos.checker import Findings
from tests.running import HERE, environment

HISTORY = HERE / ".test_cache" / "chaos.jsonl"
LOG_QUOTA_BYTES = 4 << 20  # less than what a job that floods its log writes
RULES = ("lost", "wrong", "twice", "lines", "bytes", "silent", "orphans", "leases", "stuck", "errors")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=None, help="default 60; of whole machines: all chapters instead")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--nodes", type=int, default=1, choices=[1, 3], help="3: whole machines, see tests/nodes.py")
    parser.add_argument(
        "--only", action="append", default=[], metavar="CHAPTER", help="of whole machines: this chapter"
    )
    parser.add_argument(
        "--true-times", action="store_true", help="with --only agent_stopped, slow_line, …: the product's own times"
    )
    parser.add_argument("--people", type=int, default=8, help="virtual people who work meanwhile")
    parser.add_argument("--viewers", type=int, default=12, help="virtual people who look at logs")
    parser.add_argument("--dwellers", type=int, default=2, help="virtual people who live in environments")
    parser.add_argument("--seconds", type=float, help="for all kills; default 1.5 for each")
    parser.add_argument("--hog", type=int, default=0, help="busy loops beside it")
    parser.add_argument("--json", type=Path, default=HISTORY, help="file that gets a line about the run")
    parser.add_argument("--keep", action="store_true", help="keep the folder even when all rules held")
    options = parser.parse_args(argv)
    root = Path(tempfile.mkdtemp(prefix="aip-chaos-"))
    if options.nodes > 1:
        from tests.chaos import storm

        print(f"chaos: {options.nodes} machines, seed {options.seed}, folder {root}", flush=True)
        asked = {"kills": options.kills, "seed": options.seed, "keep": options.keep}
        return storm.main(root, **asked, only=(*options.only,), true=options.true_times)
    os.environ.update(environment(root, gpus=2))
    os.environ["AIP_LOG_QUOTA_BYTES"] = str(LOG_QUOTA_BYTES)

    import django

    django.setup()
    return _among_people(root, options)


def _among_people(root: Path, options: argparse.Namespace) -> int:
    from tests.chaos import crowded, recovery

    kills = 60 if options.kills is None else options.kills
    seconds = options.seconds or 1.5 * kills
    asked = crowded.Asked(kills, seconds, options.people, options.viewers, options.seed, options.hog, options.dwellers)
    print(f"chaos: {asked}, folder {root}", flush=True)
    report = crowded.run(root, asked)
    print(f"  struck {json.dumps(crowded.counted(report.strikes))}")
    for name, value in report.counts.items():
        print(f"  {name} {json.dumps(value)}")
    print(recovery.as_text(report.table))
    told = {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **dataclasses.asdict(asked), **report.counts,
        "strikes": crowded.counted(report.strikes), "recovery": {row.name: row.as_dict() for row in report.table},
        "added_delay_s": recovery.added_delay(report.table), "course": report.course,
        "broken": {rule: len(texts) for rule, texts in report.findings.broken.items()},
    }  # fmt: skip
    options.json.parent.mkdir(parents=True, exist_ok=True)
    with options.json.open("a", encoding="utf-8") as file:
        file.write(json.dumps(told) + "\n")
    print(json.dumps(told))
    return _verdict(root, report.findings, options)


def _verdict(root: Path, findings: Findings, options: argparse.Namespace) -> int:
    for rule in RULES:
        broken = findings.broken.get(rule, [])
        print(f"  {rule:<8} {len(broken)}")
        for text in broken[:10]:
            print(f"           {text}")
    if findings.broken or options.keep:
        print(f"  kept: {root}")
        return 1 if findings.broken else 0
    shutil.rmtree(root, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
