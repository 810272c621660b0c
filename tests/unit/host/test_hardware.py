"""GPUs and fork hazards, from made-up machines."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

from notebook_accel.host import fork_safety, hardware
from notebook_accel.host.hardware import Gpu, cpu_count, select_visible, visible_gpus

FOUR = tuple(Gpu(f"GPU {i}", (7, 5), f"GPU-{i}abc") for i in range(4))


@pytest.mark.parametrize(
    ("setting", "names"),
    [
        (None, ["GPU 0", "GPU 1", "GPU 2", "GPU 3"]),
        ("", []),
        ("0", ["GPU 0"]),
        ("2,0", ["GPU 2", "GPU 0"]),
        ("1, 3", ["GPU 1", "GPU 3"]),
        ("0,9,1", ["GPU 0"]),
        ("-1", []),
        ("GPU-2,GPU-0abc", ["GPU 2", "GPU 0"]),
        ("MIG-1c2d", ["MIG slice"]),
        ("GPU-9", []),
    ],
)
def test_visible_devices_as_cuda_reads_it(setting: str | None, names: list[str]) -> None:
    assert [gpu.name for gpu in select_visible(FOUR, setting)] == names


@pytest.mark.parametrize(
    ("capability", "bf16"), [((7, 5), False), ((6, 0), False), ((8, 0), True), ((9, 0), True), ((0, 0), True)]
)
def test_bf16_by_generation(capability: tuple[int, int], bf16: bool) -> None:
    assert Gpu("x", capability).bf16 is bf16


def test_gpus_as_the_kernel_module_lists_them(tmp_path: Path) -> None:
    for i, name in enumerate(["Tesla T4", "Tesla P100"]):
        folder = tmp_path / f"0000:0{i}:00.0"
        folder.mkdir()
        (folder / "information").write_text(f"Model: \t\t {name}\nIRQ:   5\nGPU UUID: \t GPU-{i}\n")
    (tmp_path / "0000:09:00.0").mkdir()
    found = hardware._proc_gpus(str(tmp_path))
    assert [(gpu.name, gpu.uuid) for gpu in found] == [("Tesla T4", "GPU-0"), ("Tesla P100", "GPU-1")]
    assert hardware._proc_gpus(str(tmp_path / "none")) == ()


def test_this_machine_can_be_asked() -> None:
    assert cpu_count() >= 1
    assert isinstance(visible_gpus(), tuple)


def test_cuda_in_use_is_seen_whoever_initialised_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MARKED MOCK of a process that holds the driver; there is no GPU here."""
    monkeypatch.setattr(fork_safety, "_open_files", lambda: {"/dev/nvidia-uvm", "/dev/null"})
    monkeypatch.setattr(fork_safety, "_mapped_files", lambda: {"/usr/lib/libcuda.so.550.54"})
    assert fork_safety.cuda_initialised()
    assert fork_safety.fork_hazards() == ("CUDA is already in use in this kernel",)
    monkeypatch.setattr(fork_safety, "_open_files", lambda: {"/dev/nvidiactl"})
    assert not fork_safety.cuda_initialised(), "asking NVML is no use of CUDA"


def test_a_clean_process_has_no_hazard() -> None:
    assert fork_safety.fork_hazards() == ()


def test_an_xla_runtime_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.SimpleNamespace(_xla_runtime_is_initialized=lambda: True)
    monkeypatch.setitem(sys.modules, "_XLAC", module)  # type: ignore[arg-type]
    assert "XLA" in fork_safety.fork_hazards()[0]


def test_open_and_mapped_files_of_this_process() -> None:
    with open(__file__) as file:
        assert __file__ in fork_safety._open_files()
        assert file.readable()
    assert any("python" in path for path in fork_safety._mapped_files())
    assert fork_safety._mapped_files("/proc/none/maps") == ()


def test_an_openmp_library_that_cannot_release_its_threads_is_a_hazard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork_safety, "_mapped_files", lambda: {"/nowhere/libgomp.so.1"})
    assert "multi-threaded" in fork_safety.release_openmp_pool()
    monkeypatch.setattr(fork_safety, "_mapped_files", lambda: {"/usr/lib/libc.so"})
    assert fork_safety.release_openmp_pool() == ""
