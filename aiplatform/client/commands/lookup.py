"""Look up the id of what a user names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aiplatform.client import output
from aiplatform.client.errors import NOT_FOUND, USAGE, ClientError
from aiplatform.client.http import Client


def by_name(route: str, noun: str) -> Callable[[Client, str], int]:
    """Return the lookup of an id by id or exact name."""

    def find(client: Client, name: str) -> int:
        return int(name) if name.isdigit() else int(row_by_name(client, route, name, noun)["id"])

    return find


def row_by_name(client: Client, route: str, name: str, noun: str) -> Any:
    """The row of an exact name.

    Raises:
        ClientError: no row has the name, or several have it.
    """
    rows = [row for row in client.pages(route, search=name) if row.get("name") == name]
    if not rows:
        raise ClientError(f"No {noun} named {name} is visible to you.", NOT_FOUND)
    if len(rows) > 1:
        ids = ", ".join(str(row["id"]) for row in rows)
        raise ClientError(f"Several are named {name}: use one of the ids {ids}.", USAGE)
    return rows[0]


def by_owner(
    route: str, noun: str, listing: str, *, key: str = "name", search: str = "name"
) -> Callable[[Client, str], Any]:
    """Return the lookup of a row by name, else by id; it refuses a name that several users gave.

    Args:
        listing: command that lists the rows, for the message.
        key: field with the name.
        search: parameter of the list that finds names.
    """

    def find(client: Client, name: str) -> Any:
        query: dict[str, Any] = {search: name}
        rows = [row for row in client.pages(route, **query) if search == "name" or row[key] == name]
        if len(rows) > 1:
            raise ambiguous(name, rows)
        if rows:
            return rows[0]
        if name.isdigit():
            return client.get(f"{route}{name}/")
        raise ClientError(f"No {noun} {name}. See: {listing}", NOT_FOUND)

    return find


def ambiguous(name: str, rows: list[dict[str, Any]]) -> ClientError:
    """The refusal of a name that means rows of several users, so that no one uses another's by accident."""
    owners = ", ".join(f"{row['id']} of {output.clean(row.get('owner') or 'the platform')}" for row in rows)
    return ClientError(f"Several are named {name}: use one of the ids {owners}.", USAGE)


cluster = by_name("clusters/", "cluster")
dataset = by_name("datasets/", "dataset")
edge_group = by_name("edge-groups/", "group")
evaluation_set = by_name("evaluation-sets/", "parameter set")
model = by_name("models/", "model")
parameter_set = by_name("training/params/", "parameter set")
pipeline = by_name("pipelines/", "pipeline")
project = by_name("annotation/projects/", "project")
push_target = by_name("push-targets/", "target")
training = by_name("training/jobs/", "training")
report = by_owner("reports/", "report", "aip report list", key="title", search="search")
study = by_owner("studies/", "study", "aip study list")
template = by_owner("templates/", "template", "aip templates list")


def service(client: Client, name: str) -> Any:
    """The row of a service, by id or name."""
    return client.get(f"services/{name}/") if name.isdigit() else row_by_name(client, "services/", name, "service")


def node(client: Client, name: str) -> int:
    return int(name) if name.isdigit() else _first(client.pages("nodes/", name=name), "machine", name)


def resource_group(client: Client, name: str) -> int:
    rows = client.pages("resource-groups/") if not name.isdigit() else ()
    return int(name) if name.isdigit() else _first((r for r in rows if r["name"] == name), "resource group", name)


def _first(rows: Any, noun: str, name: str) -> int:
    row = next(iter(rows), None)
    if row is None:
        raise ClientError(f"No {noun} named {name}.", NOT_FOUND)
    return int(row["id"])


def dataset_or_new(client: Client, name: str) -> tuple[int, bool]:
    """Id of a dataset by id or exact name, and whether it was created now because none has the name."""
    try:
        return dataset(client, name), False
    except ClientError as exc:
        if name.isdigit() or exc.exit_code != NOT_FOUND:
            raise
    return int(client.post("datasets/", {"name": name}, once=True)["id"]), True


def version(client: Client, name: str) -> int:
    """Id of a dataset version: `17`, `name` (its newest annotated one) or `name:2`."""
    return _version(client, name, "datasets/", "dataset", fit=lambda row: row.get("annotated"), fitting="annotated ")


def any_version(client: Client, name: str) -> int:
    """Id of a dataset version, annotated or not: `17`, `name` (its newest) or `name:2`."""
    return _version(client, name, "datasets/", "dataset")


def model_version(client: Client, name: str) -> int:
    """Id of a model version: `17`, `name` (the newest), `name:2` or `name@alias`."""
    model_name, at, alias = name.partition("@")
    if not at or name.isdigit():
        return _version(client, name, "models/", "model")
    row = row_by_name(client, "models/", model_name, "model")
    versions = {item["name"]: int(item["version"]) for item in row["aliases"]}
    if alias not in versions:
        names = ", ".join(versions) or "none"
        raise ClientError(f"Model {model_name} has no alias {alias}. Available aliases: {names}.", NOT_FOUND)
    return versions[alias]


def _version(
    client: Client, name: str, route: str, noun: str, *,
    fit: Callable[[dict[str, Any]], object] = lambda row: True, fitting: str = "",
) -> int:  # fmt: skip
    if name.isdigit():
        return int(name)
    name, _, number = name.rpartition(":") if name.rpartition(":")[2].isdigit() else (name, "", "")
    versions = client.pages(f"{route}{row_by_name(client, route, name, noun)['id']}/versions/")
    rows = [row for row in versions if (str(row.get("number")) == number if number else fit(row))]
    if not rows:
        what = f"version {number}" if number else f"{fitting}version"
        raise ClientError(f"{noun.capitalize()} {name} has no {what}.", NOT_FOUND)
    return int(max(rows, key=lambda row: int(row.get("number") or 0))["id"])


def image(client: Client, name: str) -> int:
    """Id of an image: `17`, `name` (the newest of the name) or `name:tag`; refuses a name that several users gave."""
    if name.isdigit():
        return int(name)
    stem, _, tag = name.partition(":")
    rows = [row for row in client.pages("images/", search=stem) if row.get("name") == stem]
    rows = [row for row in rows if row.get("tag") == tag] if tag else rows
    if not rows:
        raise ClientError(f"No image {name} is visible to you. List them: aip images list", NOT_FOUND)
    if len({row.get("owner") for row in rows}) > 1:
        raise ambiguous(name, rows)
    return max(int(row["id"]) for row in rows)
