"""Every bench, one after another, each in a process of its own: `python -m tests.bench [name …]`.

Without names it runs all but `presets` (twenty minutes of training). After a single name, everything else is passed on
to that bench: `python -m tests.bench presets --overhead`. Each bench prints its own figures; this prints them beside
what they are measured against, with the conditions. Run it on a quiet machine.
"""

from __future__ import annotations

import itertools
import os
import platform
import re
import subprocess
import sys
import time

#: bench → (arguments, [(what, pattern in its output, target, reference)])
BENCHES: dict[str, tuple[list[list[str]], list[tuple[str, str, str, str]]]] = {
    "start": (
        [[]],
        [
            ("first start of the platform", r"first start: no .*? ([\d.]+ s)", "≤ 25 s", ""),
            ("later starts", r"later starts: .*? ([\d.]+ s)", "≤ 6 s", "empty Django project, see the output"),
            ("memory of the idle platform", r"idle platform \(PSS\) +([\d.]+ MiB)", "≤ 500 MiB", ""),
            ("CPU of the idle platform", r"share of a core +([\d.]+ %)", "≤ 2 %", ""),
        ],
    ),
    "spine": (
        [[]],
        [
            ("submit → user's process, p50", r"p50 ([\d.]+ s)", "≤ 0.3 s", "Slurm in the same run: --slurm"),
            ("submit → user's process, p95", r"p95 ([\d.]+ s)", "≤ 0.3 s", ""),
            ("short supervised jobs", r"short jobs +([\d.]+/s)", "≥ 20/s", "Slurm in the same run: --slurm"),
            ("CPU of all processes per short job", r"burst ([\d.]+ ms)", "≤ 70 ms", ""),
        ],
    ),
    "environments": (
        [[]],
        [
            ("50 environments, request → answers, p50", r"answers +p50 ([\d.]+ s)", "≤ 30 s", ""),
            ("memory of the platform's part of an idle one", r"\(PSS\) +p50 ([\d.]+ MiB)", "≤ 40 MiB", ""),
            ("asking and judging 50 of them", r"all of them +([\d.]+ s)", "≤ 5 s", ""),
        ],
    ),
    "edge": (
        [["--kills", "40"]],
        [
            ("200 devices, faster than a poll a minute needs", r"word known: .*; (\d+) times", "≥ 10", ""),
            ("half packages after random kills of an agent", r"(\d+) half packages", "0", ""),
        ],
    ),
    "scheduler": (
        [[]],
        [
            ("plan(), 10,000 waiting × 256 GPUs", r"full .*median ([\d.]+ ms)", "≤ 100 ms", "Kueue 42 decisions/s"),
            ("the same where clusters lend", r"lends .*median ([\d.]+ ms)", "≤ 100 ms", ""),
            ("the same over a pure Python loop", r"lends .* ([\d.]+ times) the floor", "", "1"),
        ],
    ),
    "progress": (
        [[]],
        [
            ("remaining time of a training, quiet, median error", r"quiet, 10 min budget .*? ([\d.]+%)", "≤ 20 %", ""),
            ("the same, 10x loaded", r"10x loaded, 300 steps .*? ([\d.]+%)", "≤ 20 %", ""),
            ("the same, killed and restored", r"restored, 2000 steps .*? ([\d.]+%)", "≤ 20 %", ""),
        ],
    ),
    "simulate": (
        [[]],
        [
            ("AIStation's week, 10 s starts", r"10 s, ours +: ([\d.]+ trainings)", "≥ 412", "published plan 288"),
            ("AIStation's week, 10 min starts", r"600 s, ours +: ([\d.]+ trainings)", "≥ 409", "published plan 288"),
            ("in use per card and day", r"10 s, ours .*?([\d.]+ h)", "≥ 23.5 h", "published 22.8 h"),
            ("utilisation", r"10 s, ours .*?([\d.]+ %)", "≥ 88 %", "published 80 %"),
            ("gangs 0.80: 8+ cards, wait p95", r"0\.80, ours .*?p95 ([\d.]+ h)", "≤ 35 h", "skip-ahead 129–557 h"),
            ("gangs 0.95: 8+ cards, wait p95", r"0\.95, ours .*?p95 ([\d.]+ h)", "≤ 100 h", "skip-ahead 756–897 h"),
            (
                "gangs 0.95: urgent, wait p95",
                r"0\.95, ours .*?urgent p95 ([\d.]+ min)",
                "≤ 5 min",
                "skip-ahead 2–4.5 h",
            ),
        ],
    ),
    "recover": (
        [["--rounds", "3"]],
        [
            ("a process killed → next job runs, p95", r"free, any .*/ ([\d.]+) s", "≤ 5 s", ""),
            ("the same beside two busy loops", r"loaded, any .*/ ([\d.]+) s", "≤ 15 s", ""),
        ],
    ),
    "logs": (
        [[]],
        [
            ("500 viewers: lost / doubled", r"lost / doubled +(\d+ / \d+)", "0 / 0", ""),
            ("log line → browser, p95", r"browser, p95 +(\d+ ms)", "≤ 500 ms", "Determined 1–2 s"),
            ("end of a 1 GB log", r"1 GB log +([\d.]+ ms)", "≤ 300 ms", ""),
        ],
    ),
    "curves": (
        [[]],
        [
            ("taking in 1,000 reported lines, CPU", r"lines +p50 ([\d.]+ ms)", "≤ 20 ms", ""),
            ("one curve of 100,000 points, CPU", r"thinned +([\d.]+ ms)", "≤ 20 ms", "152 ms as rows"),
            ("20 runs compared on one grid, CPU", r"one grid +(\d+ ms)", "≤ 300 ms", "3.0 s as rows"),
        ],
    ),
    "experiments": (
        [[]],
        [
            ("table of 1,000 runs, answered", r"all runs +answered in (\d+ ms)", "≤ 300 ms", ""),
            ("filtered and sorted", r"and sorted +answered in (\d+ ms)", "≤ 300 ms", ""),
            ("20 curves of 100,000 points, answered", r"one curve +answered in (\d+ ms)", "≤ 300 ms", ""),
            ("table of 1,000 runs, drawn", r"table +drawn (\d+ ms)", "≤ 1000 ms", ""),
            ("20 runs beside each other, drawn", r"comparison +drawn (\d+ ms)", "≤ 1000 ms", ""),
        ],
    ),
    "studies": (
        [["--images", "1500", "--epochs", "6", "--minutes", "45"]],
        [
            ("20 pruned trials, of the full compute", r"pruned one: (\d+ %)", "≤ 60 %", ""),
            ("they reach what was set by hand", r"set by hand: (\w+)", "yes", ""),
        ],
    ),
    "reporting": (
        [[]],
        [
            ("1,000 points/s by the SDK, a point a line", r"a point a line +([\d.]+ % of a core)", "≤ 1 %", ""),
            ("reported → in the API, p95", r"SDK, reported .*p95 ([\d.]+ s)", "≤ 2 s", ""),
            ("SummaryWriter → in the API, p95", r"SummaryWriter, flushed .*p95 ([\d.]+ s)", "≤ 2 s", ""),
        ],
    ),
    "datasets": (
        [["--upload", "256"]],
        [
            ("upload", r"(\d[\d.,]* MiB/s)", "disk speed", "50 MB/s cap"),
            ("check of 60,000 images of 28 × 28", r"png.zip.*: check +([\d.]+ s, [\d.]+ CPU-s)", "≤ 60 s", ""),
            ("check of 60,000 JPEG of 12 kB", r"jpeg.zip.*: check +([\d.]+ s, [\d.]+ CPU-s)", "≤ 60 s", ""),
            ("gallery of 20,000 images, slowest page", r"slowest page of these +([\d.]+ ms)", "≤ 100 ms", ""),
        ],
    ),
    "server": (
        [["--rounds", "3", "--seconds", "3"]],
        [
            ("CPU per request, no-op, 1 caller", r"1 caller +([\d.]+ ms)", "≤ 0.5 ms", "LitServe 2.3 ms"),
            (
                "CPU per request, platform's proxy, 1 / 32",
                r"platform's proxy, .*? ([\d.]+ / [\d.]+ ms)",
                "≤ 0.5 ms",
                "",
            ),
            ("ResNet-18 / raw engine loop", r"raw engine loop +([\d.]+)", "≥ 0.95", "LitServe 1.0"),
            ("idle service", r"CPU, memory +(.+?)  ", "≤ 2 %, ≤ 300 MB", "LitServe 20 %, 430–580 MB"),
            ("start to ready", r"start to ready +([\d.]+ s)", "≤ 2 s", "LitServe 5 s"),
            ("describing a picture, of a request of 640 px", r"640 px +([\d.]+%)", "≤ 2 %", ""),
            ("ensemble of two / its parts, bare", r"its bare parts +([\d.]+)", "≤ 1.05", ""),
        ],
    ),
    "hosts": (
        [["--rounds", "5"]],
        [
            ("16 services in one process / one each, PSS", r"pss_ratio +([\d.]+)", "≤ 0.33", ""),
            ("the same, requests per second at one", r"one_rate_ratio +([\d.]+)", "≥ 0.9", ""),
            ("the same, requests per second at four", r"each_rate_ratio +([\d.]+)", "", ""),
            ("the same, CPU time of a request at four", r"each_cpu_ratio +([\d.]+)", "≤ 1.1", ""),
        ],
    ),
    "ports": (
        [[]],
        [
            ("a job's port: added per request, p50", r"added p50 ([\d.]+ ms)", "≤ 6 ms", ""),
            ("a job's port: 200 MB down", r"through .*down (\d+ MB/s)", "≥ 90 MB/s", ""),
        ],
    ),
    "annotation": (
        [[]],
        [
            ("2,000 polygons: pan frame", r"\n +2000 +\d+ ms +([\d.]+ / +[\d.]+ ms)", "≤ 50 ms", "Konva 65 ms"),
            ("COCO export, 100,000 polygons", r"polygons: ([\d.]+ s)", "≤ 10 s", "Label Studio 61 s"),
        ],
    ),
    "editor": (
        [[]],
        [
            ("pipeline of 1,000 steps: open", r"1000 open +([\d.]+ ms)", "≤ 1000 ms", "n8n 28–70 s"),
            ("pipeline of 1,000 steps: layout", r"1000 layout +([\d.]+ ms)", "≤ 100 ms", ""),
            ("pipeline of 1,000 steps: list", r"1000 list +([\d.]+ ms)", "≤ 1000 ms", ""),
            (
                "pipeline of 1,000 steps: pan frame",
                r"1000 pan +frame p50 / p95 +([\d.]+ / +[\d.]+ ms)",
                "p95 ≤ 33 ms",
                "",
            ),
            (
                "pipeline of 1,000 steps: drag frame",
                r"1000 drag +frame p50 / p95 +([\d.]+ / +[\d.]+ ms)",
                "p95 ≤ 33 ms",
                "",
            ),
            (
                "the same, all in sight: pan frame",
                r"1000 pan all +frame p50 / p95 +([\d.]+ / +[\d.]+ ms)",
                "p95 ≤ 67 ms",
                "",
            ),
        ],
    ),
    "web": (
        [[]],
        [
            ("me, CPU", r"api me +([\d.]+ CPU-ms)", "≤ 6 CPU-ms", "19 CPU-ms before"),
            ("jobs, 2,000 wait, CPU", r"api jobs, queued +([\d.]+ CPU-ms)", "≤ 40 CPU-ms", "154 CPU-ms before"),
            ("trainings, CPU", r"api trainings +([\d.]+ CPU-ms)", "≤ 25 CPU-ms", "29–95 CPU-ms before"),
            ("main pages above 25 CPU-ms", r"\d+ pages, (\d+) above", "0", ""),
            ("annotator: requests, kB on the line", r"\nannotator .* (\d+ +[\d.]+) +\d+ ms", "≤ 25, 150 kB", ""),
            ("60 on dashboards, p95", r"p95 (\d+ ms)", "≤ 300 ms", "p50 2.5 s before"),
            ("60 on dashboards, errors", r"errors (\d+)", "0", ""),
            ("memory of the web processes", r"web processes (.+ MiB)", "flat", "48 → 249 MiB before"),
        ],
    ),
    "images": (
        [[]],
        [
            ("layer of 85 MB: pack, processes stand still", r"still\) ([\d.]+ s)", "≤ 5 s", ""),
            ("layer of 85 MB: unpack", r"checksum ([\d.]+ s)", "≤ 5 s", ""),
            ("start on three layers and a box", r"a box ([\d.]+ ms)", "≤ 50 ms", ""),
        ],
    ),
    "ssh": (
        [[]],
        [
            ("ssh job true, p50", r"p50 ([\d.]+ s)", "≤ 0.5 s", ""),
            ("ssh job true, p95", r"p95 ([\d.]+ s)", "≤ 1 s", ""),
            ("scp into a job, 200 MiB", r"scp up: .* ([\d.]+ MiB/s)", "≥ 50 MiB/s", ""),
            ("scp out of a job, 200 MiB", r"scp down: .* ([\d.]+ MiB/s)", "≥ 50 MiB/s", ""),
            ("memory of the gateway, 20 sessions", r"gateway: ([\d.]+ MiB)", "≤ 150 MiB", ""),
        ],
    ),
    "parsers": (
        [[]],
        [
            ("steepest growth of a parser's CPU time", r"steepest exponent ([\d.]+)", "≤ 1.2", ""),
            ("parsers above 50 ms at the largest size", r"largest size: (\d+)", "", ""),
        ],
    ),
    "learning": (
        [[]],
        [
            ("detector, 416×320: a step of two images", r"step (\d+ CPU-ms)", "", ""),
            ("image cache over Pillow", r"([\d.]+) times Pillow's rate", "≥ 4", ""),
        ],
    ),
    "presets": (
        [["bccd"], ["fashion"], ["--overhead"]],
        [
            ("BCCD AP50, 10 min", r"bccd: \S+ ([\d.]+)", "≥ 0.85", "prototype 0.885"),
            ("Fashion-MNIST accuracy, 10 min", r"fashion: \S+ ([\d.]+)", "≥ 0.925", "prototype 0.937"),
            *(
                (f"{preset}: {words}", rf"{preset}, {pattern}: ([\d.]+{unit})", target, "")
                for preset in ("detect", "classify", "segment")
                for words, pattern, unit, target in (
                    ("steps/s as a job / in a bare loop", "steps/s of the bare loop", "", "≥ 0.97"),
                    ("the same per CPU second", "steps/CPU-s of the bare loop", "", "≥ 0.97"),
                    ("start of the job to its first step", "start to first step", " s", "≤ 3 s"),
                )
            ),
        ],
    ),
}


def main(arguments: list[str]) -> int:
    """Run the named benches and print one table. Returns 1 where one of them failed, 2 for an unknown name."""
    names = list(itertools.takewhile(BENCHES.__contains__, arguments))
    options = arguments[len(names) :]
    if options and len(names) != 1:
        print(f"There is no bench {options[0]}; there are {', '.join(BENCHES)}.", file=sys.stderr)
        return 2
    load, rows, failed = os.getloadavg()[0], [], False
    for name in names or [name for name in BENCHES if name != "presets"]:
        runs, wanted = BENCHES[name]
        text = ""
        for given in [options] if options else runs:
            print(f"\n== {name} {' '.join(given)}".rstrip(), flush=True)
            began = time.monotonic()
            command = [sys.executable, "-m", f"tests.bench.{name}", *given]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
            print(done.stdout + f"({time.monotonic() - began:.0f} s, exit code {done.returncode})", flush=True)
            text, failed = text + done.stdout, failed or done.returncode != 0
        for what, pattern, target, reference in wanted:
            found = re.search(pattern, text)
            if found or not options:  # other options measure only a part, or something else
                rows.append((what, found[1].strip() if found else "not measured", target, reference))
    widths = [max((len(row[n]) for row in rows), default=0) for n in range(4)]
    print(f"\n{os.cpu_count()} cores, Python {platform.python_version()}, load {load:.1f} at the start")
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
