"""What upper rooms add to lower ones stands in registries of one make, `aiplatform.lib.registry`."""

from __future__ import annotations

import ast
import re

from tests.architecture.code import APPS, modules_with, tree, where

#: Collections of a module that grow and are no registries: what a process has under way, and its settings.
GROWING = {
    "aiplatform/cli/children.py": {"_live"},  # processes that will be waited for
    "aiplatform/cli/forks.py": {"_open"},  # requests under way
    "aiplatform/env.py": {"problems", "documented"},
    "aiplatform/lib/static_files.py": {"_bundles"},  # bundles that were made of the files as they are
    "datasets/transfer/tus.py": {"_receiving"},
    "inference/serving/proxy.py": {"_cannot"},  # refusals of the last ten seconds
    "inference/serving/scaling/scaling.py": {"_nudged"},  # services that a look was asked for
    "inference/serving/traffic/differences.py": {"_kept"},  # when a picture of a service was last kept
    "inference/serving/traffic/routing.py": {"_loads"},  # requests under way by server
    "training/programs/sdk/reporting.py": {"_warned"},  # names that the log mentions once; the SDK has no platform
    "workers/jobs/output/job_stream.py": {"_streams"},
    "workers/supervisor/sandbox.py": {"_copied"},  # what the system files copied into sandboxes held
}


#: The same as `_empty_collections` finds, in the text of a module.
ASSIGNS_EMPTY_COLLECTION = r"(?m)^[\w\])][^\n]*=\s*\(?\s*(?:\[\s*\]|\{\s*\}|(?:list|dict|set)\()"


def _empty_collections(module: ast.Module) -> list[tuple[str, int]]:
    """Names bound to an empty list, dict or set at the top of a module: something fills them later."""
    found = []
    for node in module.body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        value, targets = node.value, node.targets if isinstance(node, ast.Assign) else [node.target]
        is_empty = (
            (isinstance(value, ast.List) and not value.elts)
            or (isinstance(value, ast.Dict) and not value.keys)
            or (isinstance(value, ast.Call) and ast.unparse(value) in {"list()", "dict()", "set()"})
        )
        found += [(target.id, node.lineno) for target in targets if is_empty and isinstance(target, ast.Name)]
    return found


def test_registries_are_made_by_the_one_class():
    made = [
        where(path, line) + f": {name}"
        for path in modules_with(ASSIGNS_EMPTY_COLLECTION, "aiplatform", *APPS)
        for name, line in _empty_collections(tree(path))
        if name not in GROWING.get(where(path, 0).rpartition(":")[0], set())
    ]

    assert made == [], "Use aiplatform.lib.registry, or name the collection in GROWING with its reason"


def test_registries_made_by_hand_are_found():
    lines = [
        "kinds: dict[str, int] = {}",
        "names = []",
        "FULL = [1]",
        "late = dict()",
        "long: dict[\n    str, int\n] = {}",
    ]

    found = _empty_collections(ast.parse("\n".join(lines)))

    assert found == [("kinds", 1), ("names", 2), ("late", 4), ("long", 5)]
    assert [bool(re.search(ASSIGNS_EMPTY_COLLECTION, line)) for line in lines] == [True, True, False, True, True]
