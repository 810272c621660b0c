"""What the clean template process loads before ranks are forked from it: all that a rank needs, and no device."""

from __future__ import annotations

import contextlib
import importlib

_MODULES = (
    "torch",
    "torch.distributed",
    "torch._dynamo",
    "tqdm.auto",
    "notebook_accel.launch.worker",
    "notebook_accel.backends.torch_group",
    "notebook_accel.training.accelerator",
    "IPython.core.display_functions",
)

for _name in _MODULES:
    # A module that cannot be loaded here is reported by the rank that needs it.
    with contextlib.suppress(Exception):
        importlib.import_module(_name)
