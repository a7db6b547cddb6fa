"""The checker shares no code with the engine."""

import ast
import sys
from pathlib import Path

import pytest

CHECKER = Path(__file__).parents[2] / "soak" / "checker"


def imports(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    named = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    return named | {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}


@pytest.mark.parametrize("path", sorted(CHECKER.glob("*.py")), ids=lambda path: path.stem)
def test_checker_imports_the_standard_library_and_itself_alone(path: Path):
    foreign = {name for name in imports(path) if name.partition(".")[0] not in sys.stdlib_module_names}
    assert all(name.startswith("soak.checker.") for name in foreign), foreign


def test_package_of_the_checker_imports_nothing_else():
    """Importing soak.checker runs soak/__init__.py too."""
    assert not imports(CHECKER.parent / "__init__.py")
