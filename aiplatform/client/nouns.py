"""The nouns of `aip` and the modules that declare their verbs; a module is imported when its noun is used."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from aiplatform.client import errors, output
from aiplatform.client.verbs import Group, Verb


@dataclass(frozen=True)
class Noun:
    """A word after `aip`: a command, or a noun with verbs.

    Attributes:
        module: module in `commands`; its `NOUNS` has the verb or the verbs under the name.
        also: other names.
    """

    name: str
    module: str
    help: str
    also: tuple[str, ...] = ()

    def declaration(self) -> Verb | Sequence[Verb | Group]:
        module = importlib.import_module(f"{__package__}.commands.{self.module}")
        verbs: Verb | Sequence[Verb | Group] = module.NOUNS[self.name]
        return verbs


NOUNS = (
    Noun("login", "account", "Sign in and store a token for this address."),
    Noun("logout", "account", "Delete the stored token."),
    Noun("whoami", "account", "Show the signed-in user."),
    Noun("token", "account", "Create a token for a script; it is printed once."),
    Noun("files", "files", "Files of your home folder: the same in every workspace."),
    Noun("datasets", "datasets", "Datasets and their versions."),
    Noun("uploads", "files", "Uploads of files."),
    Noun("upload", "datasets", "Same as `aip datasets upload`."),
    Noun("annotation", "annotation", "Annotation projects."),
    Noun("train", "training", "Trainings: submit, watch, steer."),
    Noun("runs", "runs", "Runs: trainings, custom jobs and what scripts report, to find and to compare."),
    Noun("study", "studies", "Hyperparameter search: studies of many trainings."),
    Noun("report", "reports", "Reports: texts with live tables, charts and metrics of runs."),
    Noun("params", "params", "Parameter sets. Use one: aip train submit --params NAME"),
    Noun("run", "running", "Custom jobs: run a command on the platform with the files of this folder."),
    Noun("templates", "templates", "Job templates. Use one: aip run --template NAME"),
    Noun("images", "images", "Images: engines and saved workspaces that jobs run in."),
    Noun("models", "models", "Models: the model registry.", ("model",)),
    Noun("evaluate", "evaluations", "Evaluations of models.", ("evaluations",)),
    Noun("serve", "services", "Endpoints: services that answer requests with a model."),
    Noun("predict", "predictions", "Batch predictions: run a model on many images.", ("predictions",)),
    Noun("pipeline", "pipelines", "Pipelines: steps on data and models.", ("pipelines",)),
    Noun("video", "videos", "Video analytics: track and count objects in videos and streams.", ("videos",)),
    Noun("edge", "edge", "Edge groups: devices outside of the cluster."),
    Noun("push", "pushing", "Export targets: push models to your own storage and registries."),
    Noun("queue", "queue", "Queue: jobs that wait in your clusters, why, and when they start."),
    Noun("priority", "queue", "Change the priority of a queued job."),
    Noun("jobs", "queue", "Jobs of every kind."),
    Noun("follow", "following", "Set the dependencies of a queued job."),
    Noun("arrays", "following", "Arrays of jobs."),
    Noun("env", "environments", "Workspaces: JupyterLab, VS Code and SSH with your home folder."),
    Noun("secret", "secrets", "Secrets by name, for your jobs and pipelines."),
    Noun("nodes", "nodes", "Nodes: list, drain, remove and add them."),
    Noun("clusters", "clusters", "Virtual clusters: who may use how much of the nodes."),
    Noun("extend", "approvals", "Request more run time for a job."),
    Noun("requests", "approvals", "Requests for more run time."),
    Noun("approvals", "approvals", "Jobs that wait for approval by a cluster administrator."),
    Noun("ports", "ports", "Ports: programs of jobs in the browser."),
    Noun("ssh", "ssh", "Open a shell in a running job, or run a command there."),
    Noun("port-forward", "ssh", "Reach ports of a running job from this computer."),
    Noun("ssh-keys", "ssh_keys", "SSH keys: public keys that sign you in to running jobs."),
    Noun(
        "resource-groups",
        "resource_groups",
        "Resource groups: nodes reserved for some kinds of jobs, at certain hours.",
    ),
    Noun("people", "people", "Users: accounts; for administrators."),
    Noun("audit", "people", "Audit log: who did what; for administrators."),
    Noun("groups", "people", "Groups of users."),
    Noun("roles", "people", "Roles and their permissions."),
    Noun("share", "people", "Share a dataset, model or annotation project, or list its sharing."),
    Noun("usage", "operations", "Usage: GPU hours, core hours, jobs and waits in a period."),
    Noun("history", "operations", "History of nodes and clusters: mean and maximum of each metric."),
    Noun("decision", "operations", "Current input and decisions of the scheduler, as JSON to replay."),
    Noun("notifications", "operations", "Notifications: messages of the platform to you."),
    Noun("alarms", "alarms", "Alerts: problems of the platform; for administrators."),
    Noun("sample", "sample", "The sample project: a dataset, a trained model and an endpoint."),
    Noun("completion", "completion", "Print the completion script of a shell: bash, zsh or fish."),
    Noun("api", "api", "Send a request to the API and print the response as JSON."),
)


def all_verbs() -> Iterator[tuple[str, Verb]]:
    """Yield every verb with its command after `aip`, such as `jobs list`."""
    for noun in NOUNS:
        yield from _verbs(noun.name, noun.declaration())


def _verbs(command: str, declaration: Verb | Sequence[Verb | Group]) -> Iterator[tuple[str, Verb]]:
    if isinstance(declaration, Verb):
        yield command, declaration
        return
    for verb in declaration:
        yield from _verbs(f"{command} {verb.name}", verb if isinstance(verb, Verb) else verb.verbs)


class Parser(argparse.ArgumentParser):
    """argparse with one-line errors and exit code 2."""

    example = ""  # a correct command line

    def error(self, message: str) -> NoReturn:
        example = f" Example: {self.example}." if self.example else ""
        output.say(f"{self.prog}: {message}.{example} See: {self.prog} --help")
        raise SystemExit(errors.USAGE)


class NounParser(Parser):
    """Parser of a noun; its verbs are added when it parses or prints its help."""

    noun: Noun | None = None

    def load(self) -> None:
        if self.noun is not None:
            noun, self.noun = self.noun, None
            _add(self, noun.declaration())

    def parse_known_args(self, *args: Any, **kwargs: Any) -> Any:
        self.load()
        return super().parse_known_args(*args, **kwargs)

    def format_help(self) -> str:
        self.load()
        return super().format_help()


def add_nouns(top: argparse.ArgumentParser) -> None:
    """Add all nouns to the parser of `aip`."""
    nouns = top.add_subparsers(dest="noun", metavar="NOUN", required=True, parser_class=NounParser)
    for noun in NOUNS:
        parser = nouns.add_parser(noun.name, help=noun.help, description=noun.help, aliases=noun.also)
        parser.noun = noun


def _add(parser: Parser, declaration: Verb | Sequence[Verb | Group]) -> None:
    if isinstance(declaration, Verb):
        _add_shared(parser)
        declaration.add_to(parser)
        parser.set_defaults(parser=parser)
        parser.example = declaration.example
        return
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=Parser)
    for verb in declaration:
        below = verbs.add_parser(verb.name, help=verb.help, description=verb.help)
        _add(below, verb if isinstance(verb, Verb) else verb.verbs)


def _add_shared(parser: argparse.ArgumentParser) -> None:
    """Add the options that every verb takes."""
    group = parser.add_argument_group("options of every command")
    group.add_argument("--url", default=None, metavar="URL", help="address of the platform")
    group.add_argument("-o", "--output", choices=["table", "json"], default=argparse.SUPPRESS, help="output format")
    group.add_argument("--json", dest="output", action="store_const", const="json", default=argparse.SUPPRESS)
