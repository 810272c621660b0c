"""Facts about the machine, and the decision made from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

StartMethod = Literal["fork", "template", "spawn"]
Precision = Literal["no", "fp16", "bf16"]


@dataclass(frozen=True, slots=True)
class HostFacts:
    """What is known of the machine and of this kernel without touching a device.

    ``gpus`` names each visible NVIDIA GPU; ``fork_hazards`` says in plain words why forking this process is unsafe
    at all, ``thread_hazard`` why it is unsafe for ranks with more than one OpenMP thread ("": it is not).
    """

    cpus: int = 1
    gpus: tuple[str, ...] = ()
    gpu_bf16: bool = True
    platform: str = "linux"
    fork_hazards: tuple[str, ...] = ()
    thread_hazard: str = ""


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """How a run is started; ``why`` is the reason as the user reads it ("" when there is nothing to explain)."""

    kind: str
    processes: int
    start_method: StartMethod
    precision: Precision
    group_backend: str
    threads: int
    device_name: str
    why: str = ""

    @property
    def line(self) -> str:
        """The device line: "2 × CPU · gloo · fp32 · fork"."""
        precision = "fp32" if self.precision == "no" else self.precision
        backend = [self.group_backend] if self.processes > 1 else []
        return " · ".join([f"{self.processes} × {self.device_name}", *backend, precision, self.start_method])
