"""Launches from a real kernel: again and again, interrupted, stopped by the button, failed; nothing stays behind."""

from __future__ import annotations

import re
from collections.abc import Iterator

import psutil
import pytest
from guards import ALLOWED_PROCESSES
from kernels import Cell, Kernel

pytestmark = pytest.mark.kernel

PREPARE = """
import torch
from torch.utils.data import DataLoader, TensorDataset
from notebook_accel import last_run, notebook_launcher

def parts(accelerator):
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    data = DataLoader(TensorDataset(torch.randn(64, 4)), batch_size=4)
    return accelerator.prepare(model, torch.optim.SGD(model.parameters(), 0.1), data)

def step(accelerator, model, optimizer, inputs):
    loss = model(inputs).square().mean()
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    accelerator.log({"loss": loss})

def train(accelerator, epochs=2):
    model, optimizer, data = parts(accelerator)
    for epoch in range(epochs):
        for (inputs,) in data:
            step(accelerator, model, optimizer, inputs)
        accelerator.print("epoch", epoch, "done")
    return accelerator.process_index, accelerator.unwrap_model(model).state_dict()

def fail(accelerator):
    train(accelerator, epochs=1)
    if accelerator.process_index == 1:
        raise LookupError("no such digit")
"""


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    folder = tmp_path_factory.mktemp("kernel")
    with Kernel(folder, env={"XDG_CACHE_HOME": str(folder)}) as running:
        prepared = running.run(PREPARE)
        assert prepared.error is None, prepared.error
        yield running


@pytest.fixture(autouse=True)
def no_process_stays(kernel: Kernel) -> Iterator[None]:
    yield
    _gone, alive = psutil.wait_procs(kernel.family(), timeout=5)
    left = [" ".join(process.cmdline()) for process in alive]
    assert not [command for command in left if not any(re.search(name, command) for name in ALLOWED_PROCESSES)]


def run(kernel: Kernel, code: str) -> Cell:
    cell = kernel.run(code, timeout=120)
    assert cell.error is None, cell.error
    return cell


def training(kernel: Kernel, cell: Cell) -> None:
    """Wait until the ranks of this cell are well under way."""
    kernel.wait_for(cell, lambda cell: any("epoch 3" in str(message["content"]) for message in cell.comms))


def test_two_ranks_train_alike_and_their_results_come_back(kernel: Kernel) -> None:
    run(kernel, "run = notebook_launcher(train, num_processes=2)")
    shown = run(kernel, "print(run.status, [rank for rank, _ in run.returns], len(run.history['loss'].values))")
    assert shown.stdout == "finished [0, 1] 16\n"
    same = run(kernel, "all(torch.equal(run[0][1][key], run[1][1][key]) for key in run[0][1])")
    assert same.result == "True"


def test_the_kernel_may_have_used_its_own_threads_and_launch_again(kernel: Kernel) -> None:
    run(kernel, "x = torch.randn(256, 256, requires_grad=True); (x @ x).sum().backward()")
    for processes in (1, 3, 2):
        shown = run(kernel, f"print(notebook_launcher(train, num_processes={processes}).status)")
        assert shown.stdout == "finished\n"


def test_an_interrupt_is_a_keyboard_interrupt_and_the_partial_run_is_kept(kernel: Kernel) -> None:
    cell = kernel.start("notebook_launcher(train, kwargs={'epochs': 10**6}, num_processes=2)")
    training(kernel, cell)
    kernel.interrupt()
    error = kernel.finish(cell).error
    assert error is not None
    assert error.name == "KeyboardInterrupt"
    assert (
        run(kernel, "print(last_run().status, len(last_run().history['loss'].values) > 16)").stdout == "stopped True\n"
    )


def test_a_click_on_stop_is_seen_although_the_cell_blocks(kernel: Kernel) -> None:
    cell = kernel.start("run = notebook_launcher(train, kwargs={'epochs': 10**6}, num_processes=2)")
    training(kernel, cell)
    kernel.send_comm(stop_button(cell), {"method": "custom", "content": {"event": "click"}})
    assert kernel.finish(cell).error is None
    assert run(kernel, "print(run.status)").stdout == "stopped\n"
    assert run(kernel, "print(notebook_launcher(train, num_processes=2).status)").stdout == "finished\n"


def stop_button(cell: Cell) -> str:
    """The id of the one button that the cell has opened."""
    (opened,) = [
        message["content"]["comm_id"]
        for message in cell.comms
        if message["header"]["msg_type"] == "comm_open"
        and message["content"]["data"]["state"].get("_model_name") == "ButtonModel"
    ]
    return str(opened)


def test_a_failure_is_of_the_users_own_type_and_short(kernel: Kernel) -> None:
    cell = run(
        kernel,
        "try:\n    notebook_launcher(fail, num_processes=2)\nexcept LookupError as error:\n    print(error.rank)\n",
    )
    assert cell.stdout == "1\n"
    uncaught = kernel.run("notebook_launcher(fail, num_processes=2)").error
    assert uncaught is not None
    assert "no such digit" in uncaught.traceback
    assert 'raise LookupError("no such digit")' in uncaught.traceback
    assert len(uncaught.traceback.splitlines()) <= 25


def test_a_kernel_that_is_killed_takes_its_ranks_along(
    kernel: Kernel, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("killed")
    with Kernel(folder, env={"XDG_CACHE_HOME": str(folder)}) as other:
        run(other, PREPARE)
        cell = other.start("notebook_launcher(train, kwargs={'epochs': 10**6}, num_processes=2)")
        training(other, cell)
        family = other.family()
        assert len(family) >= 2
        psutil.Process(other.pid).kill()
        _gone, alive = psutil.wait_procs(family, timeout=20)
        assert not [process for process in alive if process.is_running()]
