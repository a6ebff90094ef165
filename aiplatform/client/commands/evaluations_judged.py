"""`aip evaluate mistakes|annotate|calibration|threshold|report`: what to mend, and which answers count."""

from __future__ import annotations

import argparse
from typing import Any

from aiplatform.client import output
from aiplatform.client.commands import html_files
from aiplatform.client.commands.verbs import Noun, done, show_list
from aiplatform.client.output import Column

KINDS = ["class", "location", "both", "duplicate", "background", "missed"]
MISTAKES: list[Column] = [
    ("kind", "kind"),
    ("mistakes", "count"),
    ("images", "images"),
    ("AP50 gained if mended", lambda row: "" if row["gain"] is None else f"+{row['gain']:.4f}"),
]
BINS: list[Column] = [
    ("scores", lambda row: f"{row['low']:.2f} to {row['high']:.2f}"),
    ("answers", "count"),
    ("mean score", lambda row: "" if row["score"] is None else f"{row['score']:.3f}"),
    ("right", lambda row: "" if row["right"] is None else f"{row['right']:.3f}"),
]


def add(evaluate: Noun) -> None:
    verb = evaluate.verb("mistakes", mistakes, "Kinds of a detector's mistakes, and what mending them would be worth.")
    verb.add_argument("id", type=int)
    verb = evaluate.verb("annotate", annotate, "Make a dataset of the images with a mistake, to mend them.")
    verb.add_argument("id", type=int)
    verb.add_argument("--name", required=True, help="name of the new dataset")
    chosen = verb.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--mistake", choices=KINDS)
    chosen.add_argument("--cell", metavar="TRUTH,ANSWER", help="places in the confusion matrix, from 0")
    verb = evaluate.verb("calibration", calibration, "Whether scores are what they say, and the cheapest threshold.")
    verb.add_argument("id", type=int)
    verb.add_argument("--wrong", type=float, help="what a wrong answer costs (1)")
    verb.add_argument("--missed", type=float, help="what a missed object costs (1)")
    verb = evaluate.verb("report", report, "Save all of it as one HTML file, or as PDF.")
    verb.add_argument("id", type=int)
    html_files.options(verb, "evaluation-ID")
    verb = evaluate.verb("threshold", threshold, "Keep a threshold as the best score of an evaluation.")
    verb.add_argument("id", type=int)
    verb.add_argument("score", help="above 0 and below 1, or none for the one with the best F1")


def report(args: argparse.Namespace) -> None:
    html_files.save(args, f"evaluations/{args.id}/report/", f"evaluation-{args.id}")


def mistakes(args: argparse.Namespace) -> None:
    found = args.client.get(f"evaluations/{args.id}/results/").get("mistakes", {}).get("kinds", {})
    rows: list[Any] = [{"kind": kind, **found[kind]} for kind in KINDS if kind in found]
    show_list(args, rows, MISTAKES, empty="No kinds of mistakes are known of it. Evaluate a detector anew.")


def annotate(args: argparse.Namespace) -> None:
    body = {"name": args.name} | ({"mistake": args.mistake} if args.mistake else {"cell": args.cell})
    made = args.client.post(f"evaluations/{args.id}/annotate/", body, once=True)
    done(args, made, f"Dataset {made['dataset']} is being made. See: aip data show {made['dataset']}")


def calibration(args: argparse.Namespace) -> None:
    found = args.client.get(f"evaluations/{args.id}/calibration/", wrong=args.wrong, missed=args.missed)
    if args.json:
        output.as_json(found)
        return
    if found["reliability"]:
        output.table([row for row in found["reliability"]["bins"] if row["count"]], BINS)
        output.say(f"Expected calibration error {found['reliability']['ece']:.4f}")
    if found["costs"]:
        output.say(f"Cheapest from score {found['costs']['threshold']:.2f} on: {found['costs']['cost']:g}")


def threshold(args: argparse.Namespace) -> None:
    body = {"threshold": None if args.score == "none" else args.score}
    row = args.client.post(f"evaluations/{args.id}/threshold/", body)
    done(args, row, "Services with this version begin with it, where a request names no score.")
