"""Networks of people's own: what can be said of their text before a training, and examples to begin with.

Nothing here executes a text: only the job does, in its sandbox.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _

from aiplatform.lib.errors import Invalid
from training import presets

PARAMETER, CHOICE, OWN = "network", "architecture", "own"
OFFERED = ("classes", "channels", "width", "height")  # what `build` is given where it asks for it
MAX_LENGTH, MAX_BRACES = 30_000, 1000
EXAMPLES = Path(presets.__file__).parent / "networks"


def is_own(params: Mapping[str, Any]) -> bool:
    """Whether a training runs a network that its owner wrote."""
    return params.get(CHOICE) == OWN and bool(params.get(PARAMETER))


@cache
def examples() -> Sequence[tuple[str, str]]:
    """Return names and texts of example networks."""
    return [(path.stem, path.read_text()) for path in sorted(EXAMPLES.glob("*.py"))]


def check(params: Mapping[str, Any]) -> None:
    """Refuse a network text that no training could use; presets without such a parameter always pass.

    Raises:
        Invalid: blaming `param_network`; the sentence names the line.
    """
    text = str(params.get(PARAMETER, ""))
    if params.get(CHOICE) == OWN and not text.strip():
        raise _refused(_("Enter the network, or choose another one."))
    if text.strip() and params.get(CHOICE) != OWN:
        raise _refused(_("A network is entered here, but another one is selected. Select own, or clear the text."))
    if len(text) > MAX_LENGTH:
        raise _refused(_("A network can have at most %(most)s characters.") % {"most": MAX_LENGTH})
    if text.strip():
        _check_build(_parsed(text))


def _parsed(text: str) -> ast.Module:
    if text.count("{") > MAX_BRACES:  # fields of f-strings take quadratic time
        raise _refused(_("A network can have at most %(most)s opening braces.") % {"most": MAX_BRACES})
    try:
        return ast.parse(text)
    except SyntaxError as exc:
        message = _("Line %(line)s is not valid Python: %(why)s.") % {"line": exc.lineno or 1, "why": exc.msg}
    except (ValueError, RecursionError, MemoryError):
        message = _("The text is not valid Python, or nested too deeply.")
    raise _refused(message)


def _check_build(tree: ast.Module) -> None:
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "build"]
    if not functions:
        raise _refused(_("The function build is missing. Define build(classes, channels) that returns the network."))
    own = functions[-1].args
    places = [*own.posonlyargs, *own.args]
    needed = [node.arg for node in places[: len(places) - len(own.defaults)]]
    needed += [node.arg for node, usual in zip(own.kwonlyargs, own.kw_defaults, strict=True) if usual is None]
    strange = [name for name in needed if name not in OFFERED]
    if strange or own.posonlyargs:
        message = _("Line %(line)s: build receives %(offered)s by name, but nothing for %(strange)s.")
        strange = strange or [node.arg for node in own.posonlyargs]
        raise _refused(
            message % {"line": functions[-1].lineno, "offered": ", ".join(OFFERED), "strange": ", ".join(strange)}
        )


def _refused(message: str) -> Invalid:
    return Invalid(message, field=f"param_{PARAMETER}")
