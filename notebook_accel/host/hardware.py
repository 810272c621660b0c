"""Which processors and GPUs this machine has, found without initialising CUDA in this process."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Gpu:
    """One NVIDIA GPU: its name, compute capability ((0, 0): not known) and UUID."""

    name: str
    capability: tuple[int, int] = (0, 0)
    uuid: str = ""

    @property
    def bf16(self) -> bool:
        """Whether the hardware computes in bfloat16 (Ampere, 8.0, and later; assumed where it is not known)."""
        return self.capability == (0, 0) or self.capability >= (8, 0)


def cpu_count() -> int:
    """Processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def visible_gpus(environ: Mapping[str, str] = os.environ) -> tuple[Gpu, ...]:
    """GPUs that CUDA would show to a process started now, in CUDA's order when the environment lists them."""
    return select_visible(_nvml_gpus() or _proc_gpus(), environ.get("CUDA_VISIBLE_DEVICES"))


def select_visible(gpus: tuple[Gpu, ...], setting: str | None) -> tuple[Gpu, ...]:
    """Apply ``CUDA_VISIBLE_DEVICES``: indices or UUID prefixes, cut at the first that does not exist, as CUDA does."""
    if setting is None:
        return gpus
    chosen: list[Gpu] = []
    for item in filter(None, (part.strip() for part in setting.split(","))):
        if item.isdigit():
            match = gpus[int(item)] if int(item) < len(gpus) else None
        else:
            match = next((gpu for gpu in gpus if gpu.uuid.startswith(item)), None)
            match = Gpu("MIG slice", uuid=item) if item.startswith("MIG-") else match
        if match is None:
            break
        chosen.append(match)
    return tuple(chosen)


def _nvml_gpus() -> tuple[Gpu, ...]:
    """Ask the driver's management library, which needs no CUDA context (NVML API reference)."""
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
        if nvml.nvmlInit_v2() != 0:
            return ()
    except (OSError, AttributeError):
        return ()
    try:
        count = ctypes.c_uint()
        if nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) != 0:
            return ()
        return tuple(_nvml_gpu(nvml, index) for index in range(count.value))
    finally:
        nvml.nvmlShutdown()


def _nvml_gpu(nvml: ctypes.CDLL, index: int) -> Gpu:
    handle, name, uuid = ctypes.c_void_p(), ctypes.create_string_buffer(96), ctypes.create_string_buffer(96)
    major, minor = ctypes.c_int(), ctypes.c_int()
    nvml.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(handle))
    nvml.nvmlDeviceGetName(handle, name, ctypes.c_uint(96))
    nvml.nvmlDeviceGetUUID(handle, uuid, ctypes.c_uint(96))
    nvml.nvmlDeviceGetCudaComputeCapability(handle, ctypes.byref(major), ctypes.byref(minor))
    return Gpu(name.value.decode() or "GPU", (major.value, minor.value), uuid.value.decode())


def _proc_gpus(root: str = "/proc/driver/nvidia/gpus") -> tuple[Gpu, ...]:
    """What the kernel module lists, for machines whose management library cannot be loaded."""
    found = []
    for entry in sorted(os.listdir(root)) if os.path.isdir(root) else ():
        try:
            with open(os.path.join(root, entry, "information"), encoding="utf-8") as file:
                facts = dict(line.split(":", 1) for line in file if ":" in line)
        except OSError:
            continue
        found.append(Gpu(facts.get("Model", "GPU").strip(), uuid=facts.get("GPU UUID", "").strip()))
    return tuple(found)
