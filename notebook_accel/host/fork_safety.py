"""Whether this process can be forked without its children hanging or failing, and what can be mended first.

Facts come from the process itself (/proc, loaded modules), so they hold whoever initialised the driver.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable


def fork_hazards() -> tuple[str, ...]:
    """Plain-word reasons why a forked rank cannot work; empty when fork is safe."""
    reasons = []
    if sys.platform != "linux":
        reasons.append(f"fork is not reliable on {sys.platform}")
    if cuda_initialised():
        reasons.append("CUDA is already in use in this kernel")
    if xla_initialised():
        reasons.append("an XLA runtime is already in use in this kernel")
    return tuple(reasons)


def cuda_initialised() -> bool:
    """Whether any library of this process has initialised the CUDA driver (a forked child could not use it)."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return True
    return "/dev/nvidia-uvm" in _open_files() and any("libcuda.so" in path for path in _mapped_files())


def xla_initialised() -> bool:
    """Whether torch_xla holds a device in this process."""
    extension = sys.modules.get("_XLAC")
    probe = getattr(extension, "_xla_runtime_is_initialized", None)
    return bool(probe and probe())


def release_openmp_pool() -> str:
    """End this thread's OpenMP worker threads, so that a forked child starts its own and does not wait for them.

    The next parallel region of this process starts them again (OpenMP 5.0, omp_pause_resource_all).

    Returns:
        "" when it was done or no pool can exist; otherwise why a child with several threads could hang.
    """
    for path in {path for path in _mapped_files() if _is_openmp(path)}:
        try:
            released = ctypes.CDLL(path).omp_pause_resource_all(2) == 0
        except (OSError, AttributeError):
            released = False
        if not released:
            return "this kernel has already run multi-threaded PyTorch operations"
    return ""


def _is_openmp(path: str) -> bool:
    return any(name in os.path.basename(path) for name in ("libgomp", "libomp", "libiomp"))


def _mapped_files(source: str = "/proc/self/maps") -> Iterable[str]:
    try:
        with open(source, encoding="utf-8", errors="replace") as maps:
            return {line.split(maxsplit=5)[5].strip() for line in maps if line.count("/")}
    except (OSError, IndexError):
        return ()


def _open_files(folder: str = "/proc/self/fd") -> set[str]:
    found = set()
    for entry in os.listdir(folder) if os.path.isdir(folder) else ():
        try:
            found.add(os.readlink(os.path.join(folder, entry)))
        except OSError:
            continue
    return found
