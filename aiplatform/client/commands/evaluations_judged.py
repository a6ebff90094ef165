"""`aip evaluate mistakes|annotate|calibration|threshold|report`: errors of a model, and which predictions count."""

from __future__ import annotations

import argparse
from typing import Any

from aiplatform.client import output
from aiplatform.client.commands import html_files
from aiplatform.client.options import either, option
from aiplatform.client.output import columns
from aiplatform.client.verbs import Verb, show_list

KINDS = ["class", "location", "both", "duplicate", "background", "missed"]
MISTAKES = columns(
    "kind, mistakes=count, images, AP50 gained if mended=gain|gain",
    gain=lambda gain: "" if gain is None else f"+{gain:.4f}",
)
BINS = columns(
    "scores=|range, answers=count, mean score=score|.3f, right=right|.3f",
    range=lambda row: f"{row['low']:.2f} to {row['high']:.2f}",
)
ID = option("id", type=int)


def _report(args: argparse.Namespace) -> None:
    html_files.save(args, f"evaluations/{args.id}/report/", f"evaluation-{args.id}")


def _mistakes(args: argparse.Namespace) -> None:
    kinds = args.client.get(f"evaluations/{args.id}/results/").get("mistakes", {}).get("kinds", {})
    rows: list[Any] = [{"kind": kind, **kinds[kind]} for kind in KINDS if kind in kinds]
    show_list(args, rows, MISTAKES, empty="No kinds of mistakes are known of it. Evaluate a detector anew.")


def _calibration(args: argparse.Namespace, calibration: Any) -> None:
    if reliability := calibration["reliability"]:
        output.table([row for row in reliability["bins"] if row["count"]], BINS)
        output.say(f"Expected calibration error {reliability['ece']:.4f}")
    if costs := calibration["costs"]:
        output.say(f"Cheapest from score {costs['threshold']:.2f} on: {costs['cost']:g}")


VERBS = (
    Verb("mistakes", "Kinds of a detector's mistakes, and what mending them would be worth.", (ID,), run=_mistakes),
    Verb("annotate", "Make a dataset of the images with a mistake, to mend them.", (
        ID,
        option("--name", required=True, help="name of the new dataset"),
        either(option("--mistake", choices=KINDS),
               option("--cell", metavar="TRUTH,ANSWER", help="places in the confusion matrix, from 0"),
               required=True),
    ), post="evaluations/{id}/annotate/", once=True,
         done="Dataset {row[dataset]} is being made. See: aip data show {row[dataset]}"),
    Verb("calibration", "Whether scores are what they say, and the cheapest threshold.", (
        ID,
        option("--wrong", type=float, help="what a wrong answer costs (1)"),
        option("--missed", type=float, help="what a missed object costs (1)"),
    ), get="evaluations/{id}/calibration/", show=_calibration),
    Verb("report", "Save all of it as one HTML file, or as PDF.", (ID, *html_files.options("evaluation-ID")),
         run=_report),
    Verb("threshold", "Keep a threshold as the best score of an evaluation.", (
        ID,
        option("score", field="threshold", convert=lambda score: None if score == "none" else score,
               help="above 0 and below 1, or none for the one with the best F1"),
    ), post="evaluations/{id}/threshold/",
         done="Services with this version begin with it, where a request names no score."),
)  # fmt: skip
