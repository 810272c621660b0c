"""The helper that starts real kernels."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest
from kernels import Kernel, run_cells

pytestmark = pytest.mark.kernel


def test_cells_share_a_kernel_and_an_error_is_a_result() -> None:
    first, second, third = run_cells(["x = 20", "print('out'); 1 / 0", "x + 1"])
    assert first.error is None
    assert second.stdout == "out\n"
    assert second.error is not None
    assert second.error.name == "ZeroDivisionError"
    assert "1 / 0" in second.error.traceback
    assert third.result == "21"


def test_a_display_holds_its_newest_data() -> None:
    (cell,) = run_cells(["h = display('one', display_id='a'); h.update('two'); display('other')"])
    assert [shown["data"]["text/plain"] for shown in cell.displays] == ["'two'", "'other'"]
    assert len(cell.updates) == 1


def test_interrupt(tmp_path: Path) -> None:
    with Kernel(tmp_path) as kernel:
        cell = kernel.start("import threading; print('here'); threading.Event().wait(60)")
        kernel.wait_for(cell, lambda cell: "here" in cell.stdout)
        kernel.interrupt()
        error = kernel.finish(cell).error
        assert error is not None
        assert error.name == "KeyboardInterrupt"
        assert kernel.run("1 + 1").result == "2"


def test_what_the_kernel_started_ends_with_it(tmp_path: Path) -> None:
    with Kernel(tmp_path) as kernel:
        kernel.run("import subprocess; p = subprocess.Popen(['sleep', '60'], start_new_session=True)")
        (child,) = kernel.family()
        pid = kernel.pid
    assert not psutil.pid_exists(pid)
    assert not child.is_running()
