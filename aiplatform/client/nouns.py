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
    Noun("login", "account", "Sign in and keep a token for this address."),
    Noun("logout", "account", "Forget the saved token."),
    Noun("whoami", "account", "Show who is signed in."),
    Noun("token", "account", "Make a token for a script; it is printed once."),
    Noun("files", "files", "Your home folder on the platform: the same files in every environment."),
    Noun("datasets", "datasets", "Datasets and their versions."),
    Noun("uploads", "files", "Uploads of files."),
    Noun("upload", "datasets", "The same as `aip datasets upload`."),
    Noun("annotation", "annotation", "Annotation projects."),
    Noun("train", "training", "Trainings: submit, watch, steer."),
    Noun("runs", "runs", "Runs: trainings, commands and what scripts report, to find and to compare."),
    Noun("study", "studies", "Studies: search for good parameters by many trainings."),
    Noun("report", "reports", "Reports: texts with live tables, curves and numbers of runs."),
    Noun("params", "params", "Parameter sets. Train with one: aip train submit --params NAME"),
    Noun("run", "running", "Run a command on the platform with the files of this folder."),
    Noun("templates", "templates", "Templates of jobs. Use one: aip run --template NAME"),
    Noun("images", "images", "Engines and saved environments that jobs run in."),
    Noun("models", "models", "The model registry.", ("model",)),
    Noun("evaluate", "evaluations", "Evaluations of models.", ("evaluations",)),
    Noun("serve", "services", "Inference services."),
    Noun("predict", "predictions", "Let models answer many pictures.", ("predictions",)),
    Noun("pipeline", "pipelines", "Pipelines: steps on data and models.", ("pipelines",)),
    Noun("video", "videos", "Let detectors watch videos and streams.", ("videos",)),
    Noun("edge", "edge", "Groups of devices outside of the cluster."),
    Noun("push", "pushing", "Push models to places of your own."),
    Noun("queue", "queue", "What waits in your clusters: place, reason, about when it starts."),
    Noun("priority", "queue", "Give a waiting job another priority."),
    Noun("jobs", "queue", "Jobs of every kind."),
    Noun("follow", "following", "Let a waiting job follow these jobs, and no others."),
    Noun("arrays", "following", "Arrays of jobs."),
    Noun("env", "environments", "Development environments: JupyterLab with your home folder."),
    Noun("secret", "secrets", "Secrets by name, for your jobs and pipelines."),
    Noun("nodes", "nodes", "Machines: look, drain, remove, let further ones join."),
    Noun("clusters", "clusters", "Virtual clusters: who may use how much of the machines."),
    Noun("extend", "approvals", "Ask for more run time for a job."),
    Noun("requests", "approvals", "Requests for more run time."),
    Noun("approvals", "approvals", "Jobs that wait for somebody in charge of their cluster."),
    Noun("ports", "ports", "Ports of jobs: programs that open in the browser."),
    Noun("ssh", "ssh", "Open a shell in a running job, or run a command there."),
    Noun("resource-groups", "resource_groups", "Machines kept for some kinds of jobs, at certain hours."),
    Noun("people", "people", "Accounts; for administrators."),
    Noun("audit", "people", "The audit trail; for administrators."),
    Noun("groups", "people", "Groups of users."),
    Noun("roles", "people", "Roles and what they allow."),
    Noun("share", "people", "Share a dataset, model or annotation project, or see who has it."),
    Noun("usage", "operations", "Card hours, core hours, jobs and waits of a span of days."),
    Noun("history", "operations", "What machines and clusters did: mean and most of each curve."),
    Noun("decision", "operations", "What the scheduler sees and decides now, as JSON to replay."),
    Noun("notifications", "operations", "What you were told."),
    Noun("alarms", "alarms", "What is wrong with the platform, for those who manage it."),
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
    group.add_argument("-o", "--output", choices=["table", "json"], default=argparse.SUPPRESS, help="what to print")
    group.add_argument("--json", dest="output", action="store_const", const="json", default=argparse.SUPPRESS)
