"""Launches from a real Jupyter kernel, with what notebooks do to a kernel before and after."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from kernels import Kernel

SETUP = """
import os, sys, threading, time
import torch
from torch import nn
from notebook_accel import notebook_launcher, last_run

def train(accelerator, steps=4):
    model = nn.Linear(8, 1)
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), 0.1))
    for step in range(steps):
        loss = model(torch.ones(4, 8)).square().mean()
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        accelerator.log({"loss": loss})
    return accelerator.process_index
"""


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    folder = tmp_path_factory.mktemp("kernel")
    with Kernel(folder, env={"XDG_CACHE_HOME": str(folder / "cache")}) as kernel:
        assert kernel.run(SETUP).error is None
        # The clean template process stays for later launches; started here, no test is blamed for it.
        warm = kernel.run("notebook_launcher(train, num_processes=1, start_method='template', ui='none')")
        assert warm.error is None, warm.error
        yield kernel


def value(kernel: Kernel, expression: str) -> object:
    cell = kernel.run(f"import json; print(json.dumps({expression}))")
    assert cell.error is None, cell.error
    return json.loads(cell.stdout)


def test_after_multi_threaded_operations_of_the_kernel(kernel: Kernel) -> None:
    """A forked child that starts OpenMP threads hangs for ever when the parent's pool was alive."""
    cell = kernel.run(
        "torch.set_num_threads(2); x = torch.randn(600, 600, requires_grad=True); (x @ x).sum().backward()\n"
        "torch.randn(2_000_000).exp().sum()\n"
        "def work():\n"
        "    torch.set_num_threads(2)\n"
        "    x = torch.randn(600, 600, requires_grad=True); (x @ x).sum().backward()\n"
        "    return float(torch.ones(2_000_000).sum())\n"
        "run = notebook_launcher(work, num_processes=1, start_method='fork', ui='none', timeout=60)"
    )
    assert cell.error is None, cell.error
    assert value(kernel, "run.returns") == [2_000_000.0]
    assert value(kernel, "float((x @ x).sum() * 0 + 1)") == 1.0


def test_when_cuda_counts_as_initialised(kernel: Kernel) -> None:
    """MARKED SEAM: no GPU here, so the fact itself is set; what follows from it is real."""
    cell = kernel.run(
        "import notebook_accel.host.fork_safety as fork_safety\n"
        "known = fork_safety.cuda_initialised\n"
        "fork_safety.cuda_initialised = lambda: True\n"
        "captured = [torch.ones(2)]\n"
        "def look(accelerator): return os.getppid(), float(captured[0].sum()), train(accelerator)\n"
        "run = notebook_launcher(look, num_processes=2, ui='text')\n"
        "fork_safety.cuda_initialised = known"
    )
    assert cell.error is None, cell.error
    assert "CUDA is already in use in this kernel" in cell.stdout
    returns = value(kernel, "run.returns")
    assert [r[1:] for r in returns] == [[2.0, 0], [2.0, 1]]
    assert all(r[0] != value(kernel, "os.getpid()") for r in returns)


def test_a_closure_that_cannot_be_pickled(kernel: Kernel) -> None:
    cell = kernel.run(
        "guard, stream = threading.Lock(), open(os.devnull)\n"
        "def look():\n    with guard: return stream.name\n"
        "run = notebook_launcher(look, num_processes=2, ui='none')"
    )
    assert cell.error is None, cell.error
    assert value(kernel, "run.returns") == [os.devnull] * 2


def test_while_port_29500_is_taken(kernel: Kernel) -> None:
    try:
        taken = socket.create_server(("127.0.0.1", 29500))
    except OSError:
        taken = None  # somebody else has it, which serves as well
    cell = kernel.run("run = notebook_launcher(train, num_processes=2, ui='none')")
    if taken is not None:
        taken.close()
    assert cell.error is None, cell.error


def test_twenty_launches_every_fifth_failing_leave_the_kernel_as_it_was(kernel: Kernel) -> None:
    cell = kernel.run(
        "import psutil\n"
        "def fail(accelerator):\n    train(accelerator)\n    raise KeyError(accelerator.process_index)\n"
        "def count():\n"
        "    me = psutil.Process()\n"
        "    return [len(me.children(recursive=True)), threading.active_count(), me.num_threads(), me.num_fds()]\n"
        "def launch(function):\n"
        "    try: notebook_launcher(function, num_processes=2, ui='none')\n"
        "    except KeyError: return 1\n"
        "    return 0\n"
        "launch(train); launch(fail); before = count()\n"
        "failed = sum(launch(fail if i % 5 == 4 else train) for i in range(20))\n"
        "after = count()",
        timeout=180,
    )
    assert cell.error is None, cell.error
    assert value(kernel, "failed") == 4
    assert value(kernel, "before") == value(kernel, "after")


def test_an_error_of_a_class_of_the_notebook_with_its_cells_lines(kernel: Kernel) -> None:
    kernel.run("class Trouble(Exception): pass\ndef helper(x):\n    raise Trouble('no data')\n")
    cell = kernel.run("def fails(): helper(1)\ntry: notebook_launcher(fails, num_processes=2, ui='none')\n"
                      "except Trouble as error: print('caught', error.failure.type_name)")  # fmt: skip
    assert cell.stdout == "caught Trouble\n"
    cell = kernel.run("notebook_launcher(fails, num_processes=2, ui='none')")
    assert cell.error is not None
    assert cell.error.name == "Trouble"
    lines = cell.error.traceback.splitlines()
    assert lines[0] == "Trouble: no data"
    assert any("Cell In[" in line and "in helper" in line for line in lines)
    assert any("raise Trouble('no data')" in line for line in lines)
    assert len(lines) <= 20


def test_classes_of_the_notebook_stay_what_they_are_when_instances_come_back(kernel: Kernel) -> None:
    cell = kernel.run(
        "import enum, pickle\n"
        "class Color(enum.Enum): RED = 1\n"
        "class Point:\n"
        "    def scaled(self): return scale\n"
        "    def later(self): return defined_later()\n"
        "def make(accelerator):\n"
        "    pickle.dumps(Point())  # as torch.save does with a whole model\n"
        "    extra = (lambda: 1) if accelerator.process_index else None\n"
        "    return Point(), Color.RED, Point().scaled(), extra\n"
        "scale = 10\n"
        "before = vars(Point).copy()\n"
        "runs = [notebook_launcher(make, num_processes=2, start_method=m, ui='none') for m in ('template', 'fork')]\n"
        "scale = 20\n"
        "def defined_later(): return 30\n"
        "values = [value for run in runs for value in run.returns]"
    )
    assert cell.error is None, cell.error
    assert value(kernel, "[[type(p) is Point, c is Color.RED, s] for p, c, s, _ in values]") == [[True, True, 10]] * 4
    assert value(kernel, "[[p.scaled(), p.later()] for p, *_ in values]") == [[20, 30]] * 4
    assert value(kernel, "vars(Point) == before") is True


def test_an_interrupt_while_the_clean_process_is_loading(tmp_path: Path) -> None:
    """Jupyter interrupts the kernel's whole process group, and the template is in it."""
    with Kernel(tmp_path, env={"XDG_CACHE_HOME": str(tmp_path / "cache")}) as kernel:
        kernel.run(SETUP)
        cell = kernel.start(
            "print('going', flush=True)\nnotebook_launcher(train, num_processes=2, start_method='template')"
        )
        kernel.wait_for(cell, lambda cell: any("forkserver" in " ".join(p.cmdline()) for p in kernel.family()))
        kernel.interrupt()
        cell = kernel.finish(cell)
        assert cell.error is not None
        assert cell.error.name == "KeyboardInterrupt", cell.error.traceback
        assert value(kernel, "last_run().status") == "stopped"
        cell = kernel.run("run = notebook_launcher(train, num_processes=2, start_method='template', ui='none')")
        assert cell.error is None, cell.error
        assert value(kernel, "run.returns") == [0, 1]


def test_the_kernel_ends_at_once_although_a_rank_in_the_background_does_not_listen(tmp_path: Path) -> None:
    with Kernel(tmp_path, env={"XDG_CACHE_HOME": str(tmp_path / "cache"), "TMPDIR": str(tmp_path)}) as kernel:
        kernel.run(SETUP)
        cell = kernel.run(
            "import signal\n"
            "def deaf(folder):\n"
            "    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
            "    open(f'{folder}/deaf-{os.getpid()}', 'w').close()\n"
            "    time.sleep(1000)\n"
            f"run = notebook_launcher(deaf, ({str(tmp_path)!r},), 2, blocking=False, ui='none')\n"
            f"while len([n for n in os.listdir({str(tmp_path)!r}) if n.startswith('deaf')]) < 2: time.sleep(0.01)"
        )
        assert cell.error is None, cell.error
        process, family = psutil.Process(kernel.pid), kernel.family()
        kernel.client.shutdown()
        _, alive = psutil.wait_procs([process, *family], timeout=30)
        assert alive == []
    assert list(tmp_path.glob("nba-*")) == []


def test_a_bad_call_is_one_line_in_the_cell(kernel: Kernel) -> None:
    cell = kernel.run("notebook_launcher(train, num_processes=0)")
    assert cell.error is not None
    assert cell.error.name == "SettingsError"
    assert len(cell.error.traceback.splitlines()) == 1


def test_what_ranks_print_reaches_their_log_and_little_of_it_the_notebook(kernel: Kernel) -> None:
    cell = kernel.run(
        "def shout():\n"
        "    line = 'x' * 99\n"
        "    for i in range(500_000): print(line)\n"
        "    os.write(1, b'the end, from C\\n')\n"
        "run = notebook_launcher(shout, num_processes=2)",
        timeout=180,
    )
    assert cell.error is None, cell.error
    sent = len(cell.stdout) + len(cell.stderr) + len(json.dumps([cell.displays, cell.updates, cell.comms], default=str))
    assert sent < 20_000_000, "all that went over the wire while it ran"
    kept = len(cell.stdout) + len(cell.stderr) + len(json.dumps(cell.displays, default=str))
    assert kept < 1_000_000, "what the notebook keeps"
    assert value(kernel, "[(len(run.logs(r)), run.logs(r)[-16:]) for r in (0, 1)]") == [
        [50_000_016, "the end, from C\n"],
        [50_000_016, "the end, from C\n"],
    ]


def test_names_and_output_with_html_in_them_are_shown_as_text(kernel: Kernel) -> None:
    cell = kernel.run(
        "def evil(accelerator):\n"
        "    print('<script>alert(1)</script>')\n"
        "    accelerator.log({'<img src=x onerror=alert(2)>': 1.0})\n"
        "    for _ in accelerator.track(range(3), '<b onclick=alert(3)>bar</b>'): pass\n"
        "notebook_launcher(evil, num_processes=2)"
    )
    assert cell.error is None, cell.error
    bundles = [content["data"] for content in [*cell.displays, *cell.updates]]
    pages = [bundle.get("text/html", "") for bundle in bundles]
    final = json.dumps([pages, cell.comms], default=str)
    assert "&lt;script&gt;alert(1)" in final
    for raw in ("<script>alert", "<img src=x", "<b onclick"):
        assert raw not in final


def test_bars_pictures_and_displays_of_a_rank_appear(kernel: Kernel) -> None:
    cell = kernel.run(
        "from tqdm.auto import tqdm\n"
        "from tqdm.notebook import tqdm as notebook_tqdm\n"
        "from IPython.display import HTML, clear_output, display\n"
        "import matplotlib.pyplot as plt\n"
        "def show():\n"
        "    for _ in tqdm(range(30), desc='counting'): time.sleep(0.02)\n"
        "    for _ in notebook_tqdm(range(3), desc='again'): pass\n"
        "    display(HTML('<b>bold words</b>'), {'a': 1})\n"
        "    plt.plot([1, 2, 3]); plt.show()\n"
        "    print(get_ipython())\n"
        "    clear_output(wait=True)\n"
        "run = notebook_launcher(show, num_processes=1)"
    )
    assert cell.error is None, cell.error
    assert cell.stdout == cell.stderr == ""
    final = cell.displays[-1]["data"]["text/html"]
    assert "<b>bold words</b>" in final
    assert "{&#x27;a&#x27;: 1}" in final
    assert "data:image/png" in final
    assert "None" in final
    assert value(kernel, "run.logs()") == "None\n", "clear_output leaves no control characters"
    live = json.dumps(cell.comms, default=str)
    assert "counting" in live
    assert "30" in live
    events = value(kernel, "[json.loads(line) for line in open(run.dir / 'events.jsonl')]")
    bars = {e["description"]: (e["n"], e["total"], e["done"]) for e in events if e["event"] == "progress"}
    assert bars == {"counting": (30, 30, True), "again": (3, 3, True)}


def test_an_interrupt_ends_the_run_and_the_cell_and_the_next_launch_works(kernel: Kernel) -> None:
    cell = kernel.start(
        "def endless(accelerator):\n"
        "    print('going', flush=True)\n"
        "    while True: train(accelerator)\n"
        "notebook_launcher(endless, num_processes=2, ui='text')"
    )
    kernel.wait_for(cell, lambda cell: "going" in cell.stdout)
    kernel.interrupt()
    cell = kernel.finish(cell)
    assert cell.error is not None
    assert cell.error.name == "KeyboardInterrupt"
    assert "last_run()" in cell.error.traceback
    assert value(kernel, "last_run().status") == "stopped"
    assert [p for p in kernel.family() if "rank" in p.name()] == []
    cell = kernel.run("run = notebook_launcher(train, num_processes=2, ui='none')")
    assert cell.error is None
    assert value(kernel, "run.returns") == [0, 1]


@pytest.mark.parametrize("start_method", ["fork", "template"])
def test_ranks_die_with_their_kernel(tmp_path: Path, start_method: str) -> None:
    with Kernel(tmp_path, env={"XDG_CACHE_HOME": str(tmp_path / "cache")}) as kernel:
        kernel.run(SETUP)
        cell = kernel.start(
            "def wait(accelerator):\n    print(os.getpid(), flush=True)\n    time.sleep(1000)\n"
            f"notebook_launcher(wait, num_processes=2, ui='text', start_method='{start_method}')"
        )
        kernel.wait_for(cell, lambda cell: len([w for w in cell.stdout.split() if w.isdigit() and int(w) > 99]) >= 2)
        family = kernel.family()
        assert len(family) >= 2
        os.kill(kernel.family()[0].parents()[0].pid, signal.SIGKILL)
        _, alive = psutil.wait_procs(family, timeout=10)
        assert alive == []
