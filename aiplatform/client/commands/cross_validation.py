"""Trainings of a cross-validation: all folds followed, waited for, summed up and brought back together."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from aiplatform.client import output, waiting
from aiplatform.client.commands import outputs
from aiplatform.client.http import Client
from aiplatform.client.output import columns

COLUMNS = columns("fold, id, name, state")


def list_folds(client: Client, training: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the folds of the cross-validation of a training in order; empty without a cross-validation."""
    if not (training.get("params") or {}).get("folds"):
        return []
    return list(_read(client, training)["folds"])


def follow(client: Client, folds: Sequence[Mapping[str, Any]]) -> None:
    """Print the logs of all folds, each to its end, one after another."""
    for row in folds:
        output.say(f"Log of fold {row['fold']}, training {row['id']}:")
        waiting.follow_log(client, f"training/jobs/{row['id']}/log/", follow=True, apart=True)


def end(args: argparse.Namespace, folds: Sequence[Mapping[str, Any]]) -> int:
    """Wait until all folds are over, say what they reached, bring their results; the exit code of the worst."""
    rows = []
    for fold in folds:
        place = f"fold {fold['fold']}"
        row = waiting.until_over(args.client, f"training/jobs/{fold['id']}/", place=place)
        if waiting.exit_code(row) and not args.json:
            output.say(f"{place}: {output.clean(row.get('sentence') or '')} See: aip train logs {fold['id']}")
        rows.append(row)
    validation = _read(args.client, folds[0])
    output.as_json(validation) if args.json else print_report(args, validation)
    if target := getattr(args, "download", None):
        for fold, row in zip(folds, rows):
            brought = outputs.bring_back(args.client, row["job"], target / f"fold_{fold['fold']}", quiet=args.json)
            output.say(f"fold {fold['fold']}: {brought}")
    return max(waiting.exit_code(row) for row in rows)


def _read(client: Client, training: Mapping[str, Any]) -> Any:
    return waiting.read(client, f"training/jobs/{training['id']}/cross-validation/")


def print_report(args: argparse.Namespace, validation: Mapping[str, Any]) -> None:
    """Print the folds, and mean and standard deviation of their metrics."""
    output.table(validation["folds"], COLUMNS, empty="Not part of a cross-validation.")
    for metric in validation["figures"]:
        spread = f" ± {metric['spread']:.3g}" if metric["spread"] is not None else ""
        print(f"{metric['key']}: {metric['mean']:.3g}{spread} over {metric['folds']} of the folds")
