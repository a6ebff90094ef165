"""Look up the id of what a person names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aiplatform.client import output
from aiplatform.client.errors import NOT_FOUND, USAGE, ClientError
from aiplatform.client.http import Client


def dataset(client: Client, given: str, *, make: bool = False) -> int:
    """Id of a dataset by id or exact name; with `make`, a name nobody has becomes a new dataset."""
    return dataset_or_new(client, given)[0] if make else _dataset(client, given)


def dataset_or_new(client: Client, given: str) -> tuple[int, bool]:
    """Id of a dataset by id or exact name, and whether it was made just now because nobody has the name."""
    try:
        return _dataset(client, given), False
    except ClientError as exc:
        if given.isdigit() or exc.exit_code != NOT_FOUND:
            raise
    return int(client.post("datasets/", {"name": given}, once=True)["id"]), True


def _dataset(client: Client, given: str) -> int:
    return int(given) if given.isdigit() else int(_named(client, "datasets/", given, "dataset")["id"])


def edge_group(client: Client, given: str) -> int:
    """Id of a group of devices by id or exact name."""
    return int(given) if given.isdigit() else int(_named(client, "edge-groups/", given, "group")["id"])


def push_target(client: Client, given: str) -> int:
    """Id of a push target by id or exact name."""
    return int(given) if given.isdigit() else int(_named(client, "push-targets/", given, "target")["id"])


def pipeline(client: Client, given: str) -> int:
    """Id of a pipeline by id or exact name."""
    return int(given) if given.isdigit() else int(_named(client, "pipelines/", given, "pipeline")["id"])


def version(client: Client, given: str) -> int:
    """Id of a dataset version: `17`, `name` (its newest annotated one) or `name:2`."""
    return _version(client, given, "datasets/", "dataset", fit=lambda row: row.get("annotated"), fitting="annotated ")


def any_version(client: Client, given: str) -> int:
    """Id of a dataset version, annotated or not: `17`, `name` (its newest) or `name:2`."""
    return _version(client, given, "datasets/", "dataset", fit=lambda row: True, fitting="")


def model_version(client: Client, given: str) -> int:
    """Id of a model version: `17`, `name` (the newest), `name:2` or `name@alias`."""
    name, at, alias = given.partition("@")
    if at and not given.isdigit():
        held = {row["name"]: int(row["version"]) for row in _named(client, "models/", name, "model")["aliases"]}
        if alias not in held:
            there = ", ".join(held) or "none"
            raise ClientError(f"Model {name} has no alias {alias}. It has: {there}.", NOT_FOUND)
        return held[alias]
    return _version(client, given, "models/", "model", fit=lambda row: True, fitting="")


def _version(
    client: Client, given: str, collection: str, noun: str, *, fit: Callable[[dict[str, Any]], object], fitting: str
) -> int:
    if given.isdigit():
        return int(given)
    name, _, number = given.rpartition(":") if given.rpartition(":")[2].isdigit() else (given, "", "")
    named = _named(client, collection, name, noun)
    versions = list(client.pages(f"{collection}{named['id']}/versions/"))
    versions = [row for row in versions if (str(row.get("number")) == number if number else fit(row))]
    if not versions:
        what = f"version {number}" if number else f"{fitting}version"
        raise ClientError(f"{noun.capitalize()} {name} has no {what}.", NOT_FOUND)
    return int(max(versions, key=lambda row: int(row.get("number") or 0))["id"])


def model(client: Client, given: str) -> int:
    return int(given) if given.isdigit() else int(_named(client, "models/", given, "model")["id"])


def image(client: Client, given: str) -> int:
    """Id of an image: `17`, `name` (the newest of the name) or `name:tag`; refuses a name that several people gave."""
    if given.isdigit():
        return int(given)
    name, _, tag = given.partition(":")
    rows = [row for row in client.pages("images/", search=name) if row.get("name") == name]
    rows = [row for row in rows if row.get("tag") == tag] if tag else rows
    if not rows:
        raise ClientError(f"There is no image {given} that you can see. List them: aip images list", NOT_FOUND)
    if len({row.get("owner") for row in rows}) > 1:
        raise ambiguous(given, rows)
    return max(int(row["id"]) for row in rows)


def ambiguous(given: str, rows: list[dict[str, Any]]) -> ClientError:
    """The refusal of a name that means things of several people: nobody runs another's by accident."""
    owners = ", ".join(f"{row['id']} of {output.clean(row.get('owner') or 'the platform')}" for row in rows)
    return ClientError(f"Several are named {given}: give one of the ids {owners}.", USAGE)


def training(client: Client, given: str) -> int:
    return int(given) if given.isdigit() else int(_named(client, "training/jobs/", given, "training")["id"])


def parameter_set(client: Client, given: str) -> int:
    return int(given) if given.isdigit() else int(_named(client, "training/params/", given, "parameter set")["id"])


def evaluation_set(client: Client, given: str) -> int:
    return int(given) if given.isdigit() else int(_named(client, "evaluation-sets/", given, "parameter set")["id"])


def service(client: Client, given: str) -> Any:
    """A service by id or name, as a row."""
    if given.isdigit():
        return client.get(f"services/{given}/")
    return _named(client, "services/", given, "service")


def project(client: Client, given: str) -> int:
    if given.isdigit():
        return int(given)
    return int(_named(client, "annotation/projects/", given, "project")["id"])


def cluster(client: Client, given: str) -> int:
    if given.isdigit():
        return int(given)
    return int(_named(client, "clusters/", given, "cluster")["id"])


def node(client: Client, given: str) -> int:
    if given.isdigit():
        return int(given)
    rows = list(client.pages("nodes/", name=given))
    if not rows:
        raise ClientError(f"There is no machine named {given}.", NOT_FOUND)
    return int(rows[0]["id"])


def _named(client: Client, route: str, name: str, what: str) -> Any:
    rows = [row for row in client.pages(route, search=name) if row.get("name") == name]
    if not rows:
        raise ClientError(f"There is no {what} named {name} that you can see.", NOT_FOUND)
    if len(rows) > 1:
        ids = ", ".join(str(row["id"]) for row in rows)
        raise ClientError(f"Several are named {name}: give one of the ids {ids}.", USAGE)
    return rows[0]
