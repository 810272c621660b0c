"""Train any PyTorch function on every accelerator of the machine from one notebook cell, and watch it live."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .contracts.errors import (
        CallError,
        LaunchError,
        NotebookAccelError,
        RankDied,
        RankError,
        RunTimeout,
        SettingsError,
    )
    from .launch.launcher import debug_launcher, notebook_launcher
    from .launch.run import Run, last_run
    from .training.accelerator import Accelerator
    from .training.options import (
        AutocastKwargs,
        DataLoaderConfiguration,
        DistributedDataParallelKwargs,
        GradientAccumulationPlugin,
        GradScalerKwargs,
        InitProcessGroupKwargs,
    )
    from .training.randomness import set_seed

__version__ = "0.1.0"

# Where each public name lives; it is imported when it is first used, so that the package itself loads in no time.
_HOMES = {
    "Accelerator": "training.accelerator",
    "AutocastKwargs": "training.options",
    "CallError": "contracts.errors",
    "DataLoaderConfiguration": "training.options",
    "DistributedDataParallelKwargs": "training.options",
    "GradScalerKwargs": "training.options",
    "GradientAccumulationPlugin": "training.options",
    "InitProcessGroupKwargs": "training.options",
    "LaunchError": "contracts.errors",
    "NotebookAccelError": "contracts.errors",
    "RankDied": "contracts.errors",
    "RankError": "contracts.errors",
    "Run": "launch.run",
    "RunTimeout": "contracts.errors",
    "SettingsError": "contracts.errors",
    "debug_launcher": "launch.launcher",
    "last_run": "launch.run",
    "notebook_launcher": "launch.launcher",
    "set_seed": "training.randomness",
}

__all__ = [
    "Accelerator",
    "AutocastKwargs",
    "CallError",
    "DataLoaderConfiguration",
    "DistributedDataParallelKwargs",
    "GradScalerKwargs",
    "GradientAccumulationPlugin",
    "InitProcessGroupKwargs",
    "LaunchError",
    "NotebookAccelError",
    "RankDied",
    "RankError",
    "Run",
    "RunTimeout",
    "SettingsError",
    "__version__",
    "debug_launcher",
    "last_run",
    "notebook_launcher",
    "set_seed",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
