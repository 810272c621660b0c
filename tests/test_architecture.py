"""The house rules that a program can check: which folder may import which, what stays out of which half, sizes."""

from __future__ import annotations

import ast
import functools
import graphlib
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "notebook_accel"

# Each folder and the folders that it may import. The standard library is open to all.
MAY_IMPORT: dict[str, set[str]] = {
    "contracts": set(),
    "host": {"contracts"},
    "channel": {"contracts"},
    "capture": {"contracts", "channel"},
    "progress": {"contracts"},
    "display": {"contracts", "host", "progress"},
    "backends": {"contracts", "host"},
    "tensors": {"contracts", "host", "backends"},
    "data": {"contracts", "host", "backends", "tensors"},
    "training": {"contracts", "host", "backends", "tensors", "data"},
}
MAY_IMPORT["launch"] = set(MAY_IMPORT)
MAY_IMPORT["cli"] = set(MAY_IMPORT)

KERNEL_HALF = {"contracts", "host", "channel", "capture", "progress", "display"}  # torch is not loaded by importing it
RANK_HALF = {"backends", "tensors", "data", "training"}  # knows no screen
SCREEN_LIBRARIES = {"IPython", "ipywidgets", "ipykernel", "matplotlib"}
DEVICE_FOLDERS = {"backends", "host"}  # the only ones that may ask what a device is

MOST_LINES_OF_A_FILE = 400
MOST_LINES_OF_A_FUNCTION = 50


@dataclass(frozen=True)
class Import:
    """One import statement: the module it names in full, its line, and when it happens."""

    module: str
    line: int
    lazy: bool  # inside a function
    typing_only: bool


def files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def folder_of(module: str) -> str:
    """The folder of a module of the package; "" for the files beside the folders."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and (PACKAGE / parts[1]).is_dir() else ""


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"), str(path))


def imports(path: Path) -> list[Import]:
    package = path.parent.relative_to(ROOT).parts
    return list(_imports(tree(path), package, lazy=False, typing_only=False))


def _imports(node: ast.AST, package: tuple[str, ...], lazy: bool, typing_only: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield Import(alias.name, child.lineno, lazy, typing_only)
        elif isinstance(child, ast.ImportFrom):
            base = [*package[: len(package) - child.level + 1]] if child.level else []
            base += [child.module] if child.module else []
            for alias in child.names:
                full = ".".join([*base, alias.name])
                yield Import(full if _is_module(full) else ".".join(base), child.lineno, lazy, typing_only)
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            yield from _imports(child, package, lazy, typing_only=True)
        else:
            inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from _imports(child, package, lazy or inside, typing_only)


def _is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def where(path: Path, line: int) -> str:
    return f"{path.relative_to(ROOT)}:{line}"


def test_every_folder_has_its_row() -> None:
    folders = {path.parent.relative_to(PACKAGE).parts[0] for path in files() if path.parent != PACKAGE}
    assert folders <= MAY_IMPORT.keys()


def test_folders_import_downwards_only() -> None:
    wrong = [
        f"{where(path, item.line)} imports {item.module}; {folder} may import {sorted(MAY_IMPORT[folder])}"
        for path in files()
        if (folder := folder_of(name_of(path)))
        for item in imports(path)
        if item.module.split(".")[0] == PACKAGE.name and folder_of(item.module) not in MAY_IMPORT[folder] | {folder}
    ]
    assert not wrong, "\n".join(wrong)


def test_no_import_cycle() -> None:
    graph = {
        name_of(path): {item.module for item in imports(path) if not item.lazy and not item.typing_only}
        for path in files()
    }
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        pytest.fail("imports run in a circle: " + " → ".join(error.args[1]))


def test_the_kernel_half_is_imported_without_torch() -> None:
    wrong = [
        f"{where(path, item.line)} imports {item.module}"
        for path in files()
        if folder_of(name_of(path)) in KERNEL_HALF
        for item in imports(path)
        if item.module.split(".")[0] == "torch" and not item.lazy and not item.typing_only
    ]
    assert not wrong, "\n".join(wrong)


def test_the_rank_half_knows_no_screen() -> None:
    wrong = [
        f"{where(path, item.line)} imports {item.module}"
        for path in files()
        if folder_of(name_of(path)) in RANK_HALF
        for item in imports(path)
        if item.module.split(".")[0] in SCREEN_LIBRARIES
    ]
    assert not wrong, "\n".join(wrong)


def test_only_backends_and_host_ask_what_a_device_is() -> None:
    wrong = [
        f"{where(path, node.lineno)}: {ast.unparse(node)}"
        for path in files()
        if folder_of(name_of(path)) not in DEVICE_FOLDERS
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Compare | ast.Call | ast.Match) and _asks_for_the_device(node)
    ]
    assert not wrong, "\n".join(wrong)


def _asks_for_the_device(node: ast.Compare | ast.Call | ast.Match) -> bool:
    if isinstance(node, ast.Call):
        return bool(re.search(r"(^|\.)is_(\w+_)?available$", ast.unparse(node.func)))
    operands = [node.subject] if isinstance(node, ast.Match) else [node.left, *node.comparators]
    return any(re.search(r"device(\(.*\))?\.type$", ast.unparse(operand)) for operand in operands)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("self.device.type == 'cuda'", True),
        ("'cuda' in (x.device.type,) or model.device.type != 'cpu'", True),
        ("torch.cuda.is_available()", True),
        ("is_xla_available()", True),
        ("event.type == 'click'", False),
        ("available()", False),
    ],
)
def test_what_counts_as_asking(code: str, expected: bool) -> None:
    nodes = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Compare | ast.Call | ast.Match)]
    assert any(_asks_for_the_device(node) for node in nodes) is expected


def test_sizes() -> None:
    long_files = [
        f"{path.relative_to(ROOT)} has {lines} lines"
        for path in files()
        if (lines := len(path.read_text("utf-8").splitlines())) > MOST_LINES_OF_A_FILE
    ]
    long_functions = [
        f"{where(path, node.lineno)} {node.name} has {lines} lines"
        for path in files()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := _lines_of_code(node)) > MOST_LINES_OF_A_FUNCTION
    ]
    assert not long_files + long_functions, "\n".join(long_files + long_functions)


def _lines_of_code(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from the first statement after the docstring to the end."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def test_importing_the_package_is_light() -> None:
    code = (
        "import sys, notebook_accel\n"
        "print([name for name in ('torch', 'ipywidgets', 'matplotlib', 'IPython', 'numpy') if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_the_package_says_that_it_is_typed() -> None:
    assert (PACKAGE / "py.typed").is_file()
    assert "notebook_accel = py.typed" in (ROOT / "setup.cfg").read_text("utf-8")
