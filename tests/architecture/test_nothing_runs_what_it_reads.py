"""No shell between us and a command, no pickle between us and a file."""

import ast

from tests.architecture.code import APPS, modules_with, tree, where

#: A word of everything that the test refuses.
WORDS = "[pP]ickle|dill|shelve|marshal|system|popen|shell|torch"


def dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def test_modules_use_no_shell_and_no_pickle():
    found = []
    for path in modules_with(WORDS, "aiplatform", *APPS):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [alias.name for alias in node.names] + [getattr(node, "module", "") or ""]
                bad = {"pickle", "cPickle", "dill", "shelve", "marshal"} & set(names)
                found += [f"{where(path, node.lineno)}: {name}" for name in bad]
            if not isinstance(node, ast.Call):
                continue
            given = {word.arg: word.value for word in node.keywords}
            name = dotted(node.func)
            shell = given.get("shell")
            if name in {"os.system", "os.popen"} or (isinstance(shell, ast.Constant) and shell.value):
                found.append(f"{where(path, node.lineno)}: a shell")
            only = given.get("weights_only")
            if name == "torch.load" and not (isinstance(only, ast.Constant) and only.value is True):
                found.append(f"{where(path, node.lineno)}: torch.load without weights_only=True")

    assert found == []
