"""From settings and facts to a plan: pure, so that every machine can be tested on any machine."""

from __future__ import annotations

from ..contracts.errors import SettingsError
from ..contracts.plan import HostFacts, LaunchPlan, Precision, StartMethod
from ..contracts.settings import Settings

_GROUP = {"cpu": "gloo", "cuda": "nccl"}


def make_plan(settings: Settings, facts: HostFacts) -> LaunchPlan:
    """Decide how a run is started.

    Raises:
        SettingsError: what was asked for cannot be had on this machine; says what can.
    """
    if facts.platform == "win32":
        raise SettingsError("Ranks are started on Linux and macOS; on Windows use WSL, where everything works.")
    kind = settings.device or ("cuda" if facts.gpus else "cpu")
    if kind == "cuda" and not facts.gpus:
        raise SettingsError("device='cuda' was asked for, but no NVIDIA GPU is visible here: use device='cpu'.")
    processes = _processes(settings.num_processes, kind, facts)
    threads = max(1, facts.cpus // processes)
    method, why = _start_method(settings.start_method, threads, facts)
    return LaunchPlan(
        kind=kind,
        processes=processes,
        start_method=method,
        precision=_precision(settings.mixed_precision or "no", kind, facts),
        group_backend=_GROUP[kind],
        threads=threads,
        device_name=facts.gpus[0] if kind == "cuda" else "CPU",
        why=why,
    )


def _processes(asked: int | None, kind: str, facts: HostFacts) -> int:
    if kind == "cpu":
        return asked or 1
    there = len(facts.gpus)
    if asked is None:
        return there
    if asked > there:
        some = "1 GPU" if there == 1 else f"{there} GPUs"
        valid = "num_processes=1" if there == 1 else f"a num_processes from 1 to {there}"
        raise SettingsError(
            f"num_processes={asked}, but this machine shows {some}: use {valid}, or device='cpu' for any number."
        )
    return asked


def _precision(asked: Precision, kind: str, facts: HostFacts) -> Precision:
    if asked == "bf16" and kind == "cuda" and not facts.gpu_bf16:
        raise SettingsError(f"mixed_precision='bf16' is not possible on a {facts.gpus[0]}: use mixed_precision='fp16'.")
    return asked


def _start_method(asked: str, threads: int, facts: HostFacts) -> tuple[StartMethod, str]:
    if asked == "auto":
        hazards = [*facts.fork_hazards, *([facts.thread_hazard] if threads > 1 and facts.thread_hazard else [])]
        if not hazards:
            return "fork", ""
        return "template", f"Starting the ranks from a clean process, because {' and '.join(hazards)}."
    if asked == "fork" and facts.fork_hazards:
        reason = " and ".join(facts.fork_hazards)
        raise SettingsError(f"start_method='fork' cannot work because {reason}: use start_method='auto'.")
    if asked == "fork" and threads > 1 and facts.thread_hazard:
        return "fork", f"Forking as asked, although {facts.thread_hazard}: a rank that uses several threads may hang."
    methods: dict[str, StartMethod] = {"fork": "fork", "template": "template", "spawn": "spawn"}
    return methods[asked], ""
