"""The layout of the source: folders that can be read at a glance, and one meaning for each class name."""

import ast
from collections import defaultdict
from pathlib import Path

import seachange

ROOT = Path(seachange.__file__).parent
MODULES_MAX = 31
MODULE_LINES_MAX = 500
FUNCTION_LINES_MAX = 60


def modules() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def test_no_folder_holds_more_modules_than_a_reader_can_take_in():
    counts: dict[Path, int] = defaultdict(int)
    for module in modules():
        counts[module.parent.relative_to(ROOT)] += module.name != "__init__.py"
    assert {folder: count for folder, count in counts.items() if count > MODULES_MAX} == {}


def test_a_public_class_name_is_used_once():
    homes: dict[str, list[str]] = defaultdict(list)
    for module in modules():
        for node in ast.parse(module.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(module.relative_to(ROOT)))
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}


def test_every_package_says_what_it_holds():
    silent = [p for p in modules() if p.name == "__init__.py" and not ast.get_docstring(ast.parse(p.read_text()))]
    assert silent == []


def test_no_module_and_no_function_is_too_long():
    found = {str(m.relative_to(ROOT)): len(m.read_text().splitlines()) for m in modules()}
    assert {name: lines for name, lines in found.items() if lines > MODULE_LINES_MAX} == {}
    long = [
        f"{module.relative_to(ROOT)}: {node.name}"
        for module in modules()
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _lines(node) > FUNCTION_LINES_MAX
    ]
    assert long == []


def _lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1
