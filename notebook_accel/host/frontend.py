"""Where the kernel's output is looked at."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import Any, Literal

FrontEndKind = Literal["colab", "kaggle", "jupyter", "vscode", "ipython-terminal", "terminal", "pipe"]

_LEAST_IPYWIDGETS = (7, 7, 1)


@dataclass(frozen=True, slots=True)
class FrontEnd:
    """What shows our output: ``interactive`` if a person may be looking on, ``widgets`` if ipywidgets can be used."""

    kind: FrontEndKind
    interactive: bool
    widgets: bool

    @property
    def notebook(self) -> bool:
        """Whether output is rich (HTML, images)."""
        return self.kind in ("colab", "kaggle", "jupyter", "vscode")


def detect_front_end() -> FrontEnd:
    """Look at this process; imports nothing, so IPython counts only where it already runs."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    stdout = sys.stdout
    return classify(
        shell=shell,
        modules=sys.modules,
        environ=os.environ,
        tty=bool(stdout is not None and stdout.isatty()),
        ipywidgets=_version("ipywidgets"),
    )


def classify(
    *,
    shell: Any,
    modules: Mapping[str, Any],
    environ: Mapping[str, str],
    tty: bool,
    ipywidgets: str,
) -> FrontEnd:
    """The front end that these facts mean; ``shell`` is IPython's, ``ipywidgets`` its version ("": not installed)."""
    if shell is None:
        return FrontEnd("terminal" if tty else "pipe", interactive=tty, widgets=False)
    if getattr(shell, "kernel", None) is None:
        return FrontEnd("ipython-terminal" if tty else "pipe", interactive=tty, widgets=False)
    widgets = _numbers(ipywidgets) >= _LEAST_IPYWIDGETS
    kind = _notebook_kind(modules, environ)
    return FrontEnd(kind, interactive=not _is_batch(shell, environ), widgets=widgets)


def _notebook_kind(modules: Mapping[str, Any], environ: Mapping[str, str]) -> FrontEndKind:
    if "KAGGLE_KERNEL_RUN_TYPE" in environ:  # first: Kaggle's images are made from Colab's
        return "kaggle"
    if "google.colab" in modules or "COLAB_RELEASE_TAG" in environ:
        return "colab"
    if "VSCODE_PID" in environ or "VSCODE_CWD" in environ:
        return "vscode"
    return "jupyter"


def _is_batch(shell: Any, environ: Mapping[str, str]) -> bool:
    """Whether a program runs the notebook and nobody looks on: then only what is saved counts.

    Front ends that a person sits at let the cell ask for input; nbclient, and so papermill and nbconvert, do not.
    """
    return not getattr(shell.kernel, "_allow_stdin", True) or environ.get("KAGGLE_KERNEL_RUN_TYPE") == "Batch"


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _numbers(version: str) -> tuple[int, ...]:
    digits = [part for part in version.split(".")[:3] if part.isdigit()]
    return tuple(int(part) for part in digits)
