"""Modules that the kernel loads before it forks, so that they are not loaded again in every rank of every launch.

Always in the calling thread: a fork while another thread imports would leave a rank with a module lock that nobody
releases, and two threads that import parts of torch can see each other's half-made modules.
"""

from __future__ import annotations

import importlib
import os

from .injection import Call
from .worker import SLOW_MODULES

_TRAINING = ("notebook_accel.backends.torch_group", "notebook_accel.training.accelerator")

wanted: set[str] = set()
"""Slow modules that ranks of earlier launches had to load for themselves."""


def load_torch() -> None:
    """What every launch needs in the kernel, to host the meeting point and to know about CUDA."""
    importlib.import_module("torch.distributed")


def load_for_forked_ranks(call: Call, processes: int) -> None:
    """What the ranks are going to need: with an injected accelerator and several ranks, all that DDP imports."""
    names = [*_TRAINING, *wanted]
    if call.target is not None and processes > 1:
        names += SLOW_MODULES
    before = dict(os.environ)
    for name in names:
        importlib.import_module(name)
    # torch._inductor writes its default cache directory there, where the user would find it as if set by hand.
    for name in os.environ.keys() - before.keys():
        del os.environ[name]
