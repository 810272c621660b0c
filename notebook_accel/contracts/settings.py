"""What the user asked for, checked once at the call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast, get_args

from .errors import SettingsError
from .plan import Precision, StartMethod

DEVICES = ("cpu", "cuda")
UIS = ("auto", "widget", "html", "text", "none")
START_METHODS = ("auto", *get_args(StartMethod))
PRECISIONS = get_args(Precision)
_PRECISION_ALIASES = {None: "no", "fp32": "no", "none": "no"}


@dataclass(frozen=True, slots=True)
class Settings:
    """The arguments of a launch that decide how it is run (everything but the function and its arguments).

    ``timeout`` is in seconds for the whole run. None means: decide from the machine.
    """

    num_processes: int | None = None
    mixed_precision: Precision | None = "no"
    device: str | None = None
    start_method: str = "auto"
    ui: str = "auto"
    blocking: bool = True
    gradient_accumulation_steps: int = 1
    seed: int | None = None
    timeout: float | None = None
    max_restarts: int = 0
    project_dir: str | None = None
    run_dir: str | None = None
    use_port: int | None = None
    setup: Callable[[], Any] | None = None

    def __post_init__(self) -> None:
        precision = _PRECISION_ALIASES.get(self.mixed_precision, self.mixed_precision)
        object.__setattr__(self, "mixed_precision", precision)
        _one_of("mixed_precision", precision, PRECISIONS)
        _one_of("start_method", self.start_method, START_METHODS)
        _one_of("ui", self.ui, UIS)
        if self.device is not None:
            _one_of("device", self.device, DEVICES)
        if self.num_processes is not None:
            _whole("num_processes", self.num_processes, 1, "or leave it out to use every accelerator there is")
        _whole("gradient_accumulation_steps", self.gradient_accumulation_steps, 1)
        _whole("max_restarts", self.max_restarts, 0)
        if self.seed is not None:
            _whole("seed", self.seed, 0)
        if self.use_port is not None:
            object.__setattr__(self, "use_port", _port(self.use_port))
        if self.timeout is not None and not (_is_number(self.timeout) and self.timeout > 0):
            raise SettingsError(f"timeout is a number of seconds greater than 0, or None; you passed {self.timeout!r}.")
        if self.setup is not None and not callable(self.setup):
            raise SettingsError(f"setup is a function without arguments; you passed {self.setup!r}.")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        choices = ", ".join(repr(item) for item in allowed)
        raise SettingsError(f"{name}={value!r} is not known. Use one of {choices}.")


def _whole(name: str, value: object, least: int, advice: str = "") -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        tail = f", {advice}" if advice else ""
        raise SettingsError(f"{name} is a whole number, {least} or more{tail}; you passed {value!r}.")


def _port(value: object) -> int:
    try:
        port = int(cast(str, value))
    except (TypeError, ValueError):
        port = -1
    if not 0 <= port <= 65535:
        raise SettingsError(
            f"use_port is a port number from 0 to 65535 (0 or None: any free one); you passed {value!r}."
        )
    return port
