"""`aip completion`: completion of commands and options in bash, zsh and fish.

The shells call `aip completion words …`, which answers from the same declarations as the help.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from aiplatform.client.options import option
from aiplatform.client.verbs import Verb

SHELLS = {
    "bash": """\
_aip() {
  local IFS=$'\\n'
  COMPREPLY=($(aip completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _aip aip
""",
    "zsh": """\
#compdef aip
_aip() {
  local -a found
  found=(${(f)"$(aip completion words -- ${words[2,CURRENT]} 2>/dev/null)"})
  (( ${#found} )) && compadd -a found || _files
}
compdef _aip aip
""",
    "fish": """\
function __aip_words
  set -l tokens (commandline -opc) (commandline -ct)
  aip completion words -- $tokens[2..-1] 2>/dev/null
end
complete -c aip -a '(__aip_words)'
""",
}
INSTALL = """\
Write the script where your shell reads it:
  bash:  aip completion bash > ~/.local/share/bash-completion/completions/aip
  zsh:   aip completion zsh > "${fpath[1]}/_aip"
  fish:  aip completion fish > ~/.config/fish/completions/aip.fish
"""
WORDS = "words"


def candidates(line: Sequence[str], parser: argparse.ArgumentParser) -> list[str]:
    """Return what the last word of `line` may become: nouns, verbs, options, or values of the option before it."""
    *before, last = line or [""]
    for word in before:
        parser = _commands(parser).get(word, parser)
    options = {name: action for action in parser._actions for name in action.option_strings}
    previous = options.get(before[-1]) if before else None
    if previous is not None and previous.nargs != 0:
        matches = [str(choice) for choice in previous.choices or ()]
    elif last.startswith("-"):
        matches = [name for name, action in options.items() if action.help != argparse.SUPPRESS]
    else:
        matches = [*_commands(parser)] or [
            str(choice)
            for action in parser._actions
            if not action.option_strings and action.choices
            for choice in action.choices
        ]
    return sorted(word for word in matches if word.startswith(last))


def _commands(parser: argparse.ArgumentParser) -> dict[str, Any]:
    """Return the parsers below a parser by their names."""
    if hasattr(parser, "load"):
        parser.load()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _complete(args: argparse.Namespace) -> None:
    if args.shell != WORDS:
        print(SHELLS[args.shell], end="")
        return
    from aiplatform.client.main import parser  # noqa: PLC0415 - the parser imports all commands

    for word in candidates(args.line, parser()):
        print(word)


NOUNS = {
    "completion": Verb("completion", "Print the completion script of a shell.", (
        option("shell", choices=[*SHELLS, WORDS], metavar="SHELL", help="bash, zsh or fish"),
        option("line", nargs="*", help=argparse.SUPPRESS),
    ), epilog=INSTALL, run=_complete),
}  # fmt: skip
