"""The plan for many machines, as tables."""

from __future__ import annotations

import pytest

from notebook_accel.contracts.errors import SettingsError
from notebook_accel.contracts.plan import HostFacts
from notebook_accel.contracts.settings import Settings
from notebook_accel.launch.planner import make_plan

LAPTOP = HostFacts(cpus=2)
KAGGLE = HostFacts(cpus=4, gpus=("Tesla T4", "Tesla T4"), gpu_bf16=False)
COLAB = HostFacts(cpus=2, gpus=("Tesla T4",), gpu_bf16=False)
BIG = HostFacts(cpus=64, gpus=("NVIDIA H200",) * 8)
CUDA_USED = HostFacts(cpus=4, gpus=("Tesla T4", "Tesla T4"), fork_hazards=("CUDA is already in use in this kernel",))
POOL_RAN = HostFacts(cpus=4, thread_hazard="this kernel has already run multi-threaded PyTorch operations")
MAC = HostFacts(cpus=8, platform="darwin", fork_hazards=("fork is not reliable on darwin",))


@pytest.mark.parametrize(
    ("facts", "settings", "line", "threads"),
    [
        (LAPTOP, Settings(), "1 × CPU · fp32 · fork", 2),
        (LAPTOP, Settings(num_processes=2), "2 × CPU · gloo · fp32 · fork", 1),
        (LAPTOP, Settings(num_processes=8), "8 × CPU · gloo · fp32 · fork", 1),
        (LAPTOP, Settings(num_processes=2, mixed_precision="bf16"), "2 × CPU · gloo · bf16 · fork", 1),
        (KAGGLE, Settings(), "2 × Tesla T4 · nccl · fp32 · fork", 2),
        (KAGGLE, Settings(num_processes=1, mixed_precision="fp16"), "1 × Tesla T4 · fp16 · fork", 4),
        (KAGGLE, Settings(num_processes=4, device="cpu"), "4 × CPU · gloo · fp32 · fork", 1),
        (COLAB, Settings(), "1 × Tesla T4 · fp32 · fork", 2),
        (BIG, Settings(mixed_precision="bf16"), "8 × NVIDIA H200 · nccl · bf16 · fork", 8),
        (CUDA_USED, Settings(), "2 × Tesla T4 · nccl · fp32 · template", 2),
        (CUDA_USED, Settings(start_method="spawn"), "2 × Tesla T4 · nccl · fp32 · spawn", 2),
        (POOL_RAN, Settings(num_processes=4), "4 × CPU · gloo · fp32 · fork", 1),
        (POOL_RAN, Settings(num_processes=2), "2 × CPU · gloo · fp32 · template", 2),
        (POOL_RAN, Settings(num_processes=2, start_method="fork"), "2 × CPU · gloo · fp32 · fork", 2),
        (MAC, Settings(), "1 × CPU · fp32 · template", 8),
        (LAPTOP, Settings(start_method="template"), "1 × CPU · fp32 · template", 2),
    ],
)
def test_plan(facts: HostFacts, settings: Settings, line: str, threads: int) -> None:
    plan = make_plan(settings, facts)
    assert plan.line == line
    assert plan.threads == threads


@pytest.mark.parametrize(
    ("facts", "settings", "words"),
    [
        (CUDA_USED, Settings(), "CUDA is already in use in this kernel"),
        (POOL_RAN, Settings(), "multi-threaded PyTorch operations"),
        (POOL_RAN, Settings(start_method="fork"), "may hang"),
        (MAC, Settings(), "darwin"),
    ],
)
def test_a_decision_says_why(facts: HostFacts, settings: Settings, words: str) -> None:
    assert words in make_plan(settings, facts).why


@pytest.mark.parametrize("settings", [Settings(), Settings(start_method="template")])
def test_the_ordinary_needs_no_explanation(settings: Settings) -> None:
    assert make_plan(settings, LAPTOP).why == ""


@pytest.mark.parametrize(
    ("facts", "settings", "words"),
    [
        (KAGGLE, Settings(num_processes=8), ["num_processes=8", "2 GPUs", "from 1 to 2", "device='cpu'"]),
        (COLAB, Settings(num_processes=2), ["num_processes=2", "1 GPU", "use num_processes=1"]),
        (HostFacts(platform="win32"), Settings(), ["Windows", "WSL"]),
        (LAPTOP, Settings(device="cuda"), ["no NVIDIA GPU", "device='cpu'"]),
        (KAGGLE, Settings(mixed_precision="bf16"), ["bf16", "Tesla T4", "fp16"]),
        (CUDA_USED, Settings(start_method="fork"), ["CUDA is already in use", "start_method='auto'"]),
    ],
)
def test_what_cannot_be_is_refused_with_what_can(facts: HostFacts, settings: Settings, words: list[str]) -> None:
    with pytest.raises(SettingsError) as error:
        make_plan(settings, facts)
    assert all(word in str(error.value) for word in words), str(error.value)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"num_processes": 0}, ["num_processes", "0", "leave it out"]),
        ({"num_processes": "8"}, ["num_processes", "'8'"]),
        ({"num_processes": True}, ["num_processes", "True"]),
        ({"mixed_precision": "bogus"}, ["mixed_precision='bogus'", "'bf16'"]),
        ({"start_method": "thread"}, ["start_method='thread'", "'template'"]),
        ({"ui": "tk"}, ["ui='tk'", "'widget'"]),
        ({"device": "gpu"}, ["device='gpu'", "'cuda'"]),
        ({"gradient_accumulation_steps": 0}, ["gradient_accumulation_steps", "1 or more"]),
        ({"max_restarts": -1}, ["max_restarts"]),
        ({"seed": 1.5}, ["seed", "1.5"]),
        ({"timeout": 0}, ["timeout", "greater than 0"]),
        ({"timeout": "1h"}, ["timeout", "'1h'"]),
        ({"use_port": 70000}, ["use_port", "70000"]),
        ({"use_port": "abc"}, ["use_port", "'abc'"]),
        ({"setup": 3}, ["setup", "3"]),
    ],
)
def test_bad_settings_are_refused_at_once(wrong: dict[str, object], words: list[str]) -> None:
    with pytest.raises(SettingsError) as error:
        Settings(**wrong)  # type: ignore[arg-type]
    assert all(word in str(error.value) for word in words), str(error.value)
    assert isinstance(error.value, ValueError)


def test_a_port_may_be_written_as_accelerate_writes_it() -> None:
    assert Settings(use_port="29500").use_port == 29500  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [None, "no", "fp32"])
def test_no_mixed_precision_has_several_names(value: str | None) -> None:
    assert Settings(mixed_precision=value).mixed_precision == "no"  # type: ignore[arg-type]
