"""The reference of `aip`, made from the declared nouns and verbs of the client."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator

from aiplatform.client.main import EPILOG, parser
from aiplatform.client.nouns import NOUNS, Parser

SHARED = "options of every command"
INTRODUCTION = """\
# Command line `aip`
`aip` works with the platform from a terminal: from the folder of the platform as `python3 manage.py aip`, on other
computers as one file. `python3 manage.py client FOLDER` writes `aip.pyz` and a wheel; the file needs Python 3.11 or
newer and nothing else.

```sh
aip login http://127.0.0.1:8000 --username alice
aip whoami
```

`--json` prints JSON for all commands, `--url` names another platform, `aip NOUN VERB --help` prints the options below.
"""


def command_reference() -> str:
    """Return the Markdown of the page: one heading per noun, one per verb, and a table of its options."""
    top = parser()
    nouns = _children(top)
    parts = [INTRODUCTION, *(f"{line}\n" for line in EPILOG.split("\n"))]
    for noun in NOUNS:
        node = nouns[noun.name]
        node.format_help()  # a noun adds its verbs when it is used
        other_names = f" Other names: {', '.join(f'`{name}`' for name in noun.also)}." if noun.also else ""
        parts.append(f"\n## aip {noun.name}\n{_escape(noun.help)}{other_names}\n")
        children = _children(node)
        for command, verb in _verbs(children, f"aip {noun.name}") if children else [(f"aip {noun.name}", node)]:
            parts.append(_verb(command, verb, with_heading=bool(children)))
    return "".join(parts)


def _children(of: argparse.ArgumentParser) -> dict[str, Parser]:
    actions = [action for action in of._actions if isinstance(action, argparse._SubParsersAction)]
    return dict(actions[0].choices) if actions else {}


def _verbs(children: dict[str, Parser], command: str) -> Iterator[tuple[str, Parser]]:
    for name, child in children.items():
        below = _children(child)
        if below:
            yield from _verbs(below, f"{command} {name}")
        else:
            yield f"{command} {name}", child


def _verb(command: str, verb: Parser, *, with_heading: bool) -> str:
    usage = re.sub(r"\s+", " ", verb.format_usage().removeprefix("usage: ")).strip()
    for shared in (" [-h]", " [--url URL]", " [-o {table,json}]", " [--json]"):
        usage = usage.replace(shared, "")
    head = f"\n### {command}\n{_escape(verb.description or '')}\n" if with_heading else ""
    rows = [_row(action) for group in verb._action_groups if group.title != SHARED for action in group._group_actions]
    options = "".join(row for row in rows if row)
    table = f"\n| argument | meaning |\n|---|---|\n{options}" if options else ""
    example = f"\nExample: `{verb.example}`\n" if getattr(verb, "example", "") else ""
    return f"{head}\n```text\n{usage}\n```\n{table}{example}"


def _row(action: argparse.Action) -> str:
    if isinstance(action, argparse._HelpAction | argparse._SubParsersAction) or action.help == argparse.SUPPRESS:
        return ""
    metavar = action.metavar or (action.dest.upper() if action.option_strings else action.dest)
    value = "" if action.nargs == 0 else " ".join(metavar) if isinstance(metavar, tuple) else str(metavar)
    value = value.replace("%%", "%")
    name = ", ".join(action.option_strings)
    choices = f" One of {', '.join(f'`{choice}`' for choice in action.choices)}." if action.choices else ""
    text = (action.help or "") % {"default": action.default, "prog": "aip"} if action.help else ""
    return f"| `{f'{name} {value}'.strip()}` | {_escape(text)}{choices} |\n".replace("{", "").replace("}", "")


def _escape(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
