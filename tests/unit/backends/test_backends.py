"""Which backend a rank gets, where it finds its place, and what a GPU is asked to do."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import torch
import torch.distributed as dist
from parity.starting import run_ranks
from torch.nn.parallel import DistributedDataParallel

from notebook_accel.backends.cpu import CpuBackend
from notebook_accel.backends.cuda import CudaBackend
from notebook_accel.backends.selection import make_backend, world_from
from notebook_accel.backends.torch_group import keep_process_groups
from notebook_accel.contracts.errors import NotebookAccelError
from notebook_accel.contracts.world import World
from notebook_accel.training.accelerator import Accelerator


def test_a_process_alone() -> None:
    assert world_from({}, cpu=True) == World()


def test_torchruns_variables() -> None:
    environ = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4", "GROUP_RANK": "1"}
    assert world_from(environ, cpu=True) == World(5, 8, 1, 4, 1, 2)


def test_rank_and_size_are_enough() -> None:
    assert world_from({"RANK": "2", "WORLD_SIZE": "3"}, cpu=True) == World(2, 3, 2, 3)


def test_a_world_survives_the_environment() -> None:
    world = World(5, 8, 1, 4, 1, 2)
    assert world_from(world.as_env(), cpu=True) == world


def test_half_an_environment() -> None:
    with pytest.raises(NotebookAccelError, match=r"WORLD_SIZE is not in the environment.*set both RANK and WORLD_SIZE"):
        world_from({"RANK": "0"}, cpu=True)


def test_kinds() -> None:
    assert type(make_backend(World())) is CpuBackend
    assert type(make_backend(World(kind="cuda"))) is CudaBackend
    with pytest.raises(NotebookAccelError, match=r"no device kind 'abacus'\. Use one of 'cpu', 'cuda'"):
        make_backend(World(kind="abacus"))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64])
def test_the_cpu_reads_at_once(dtype: torch.dtype) -> None:
    tensor = torch.tensor([3], dtype=dtype)
    value = CpuBackend(World()).read_later(tensor)
    tensor += 1
    assert value == 3


class FakeEvent:
    """Stands for torch.cuda.Event on a machine without a GPU."""

    recorded: Any = None
    waited = False

    def record(self, stream: Any) -> None:
        self.recorded = stream

    def query(self) -> bool:
        return self.waited

    def synchronize(self) -> None:
        self.waited = True


class FakeCudaTensor:
    """A CPU tensor that says it is on a GPU."""

    is_cuda = True
    device = "cuda:0"

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor
        self.dtype = tensor.dtype

    def detach(self) -> torch.Tensor:
        return self.tensor.detach()

    def item(self) -> float:
        raise AssertionError("item() waits for the device")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64])
def test_a_gpu_tensor_is_copied_now_and_read_later(monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype) -> None:
    real_empty = torch.empty
    monkeypatch.setattr(torch, "empty", lambda size, dtype, pin_memory: real_empty(size, dtype=dtype))
    monkeypatch.setattr(torch.cuda, "Event", FakeEvent)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: ("stream of", device))
    chosen: list[Any] = []
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    source = torch.tensor([[2**24 + 1]], dtype=dtype)
    expected = source.item()
    pending: Any = CudaBackend(World(kind="cuda")).read_later(FakeCudaTensor(source))  # type: ignore[arg-type]  # a fake
    source.zero_()
    assert not pending.ready()
    assert chosen == ["cuda:0"], "the thread that asks must not open a context on another GPU"
    assert pending._event.recorded == ("stream of", "cuda:0")
    assert pending.value() == expected
    assert pending.ready()


def test_a_gpu_rank_reads_a_host_tensor_at_once() -> None:
    assert CudaBackend(World(kind="cuda")).read_later(torch.tensor(2.5)) == 2.5


def test_bf16_is_refused_where_the_gpu_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: including_emulation)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"Tesla T4 ({device})")
    backend = CudaBackend(World(kind="cuda", local_rank=1))
    assert 'this one is a Tesla T4 (cuda:1). Use mixed_precision="fp16"' in backend.refuse_precision("bf16")
    assert backend.refuse_precision("fp16") == ""


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_real_gpu_tensor() -> None:
    backend = CudaBackend(World(kind="cuda"))
    backend.start()
    tensor = torch.full((1,), 3.0, device=backend.device)
    pending: Any = backend.read_later(tensor)
    tensor += 1
    assert pending.value() == 3.0


def mistaken() -> str:
    dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    try:
        Accelerator()
    except NotebookAccelError as error:
        return str(error)
    finally:
        dist.destroy_process_group()
    return ""


def test_a_group_of_other_ranks_is_refused() -> None:
    first, _ = run_ranks(mistaken, 2)
    assert "This process is rank 0 of 2, but its torch.distributed group says rank 0 of 1." in first


def again() -> tuple[int, float]:
    dist.init_process_group("gloo")
    group = dist.group.WORLD
    first, second = Accelerator(), Accelerator()
    assert dist.group.WORLD is group
    return second.num_processes, first.reduce(torch.ones(())).item() + second.reduce(torch.ones(())).item()


def test_a_group_that_is_there_is_used_and_a_second_accelerator_works() -> None:
    assert run_ranks(again, 2) == [(2, 4.0), (2, 4.0)]


def group_of_a_function() -> bool:
    """Whether the process group outlives a function that destroys it and drops its model."""
    keep_process_groups()
    keep_process_groups()

    def train() -> weakref.ref[Any]:
        dist.init_process_group("gloo")
        model = DistributedDataParallel(torch.nn.Linear(2, 2))
        for _ in range(3):
            model(torch.ones(1, 2)).sum().backward()
        group = weakref.ref(model.process_group)
        dist.destroy_process_group()
        return group

    group = train()
    gc.collect()
    return group() is not None


@pytest.mark.parametrize("_time", range(5))
def test_process_groups_are_kept_until_the_process_ends(_time: int) -> None:
    """Otherwise the destructor runs at the end of the function, where two in five of these runs hang for ever."""
    assert run_ranks(group_of_a_function, 2) == [True, True]
