"""Makes one clear error of whatever went wrong in the ranks, in the kernel."""

from __future__ import annotations

import dataclasses
import itertools
import linecache
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

import psutil

from ..contracts.errors import Frame, RankDied, RankError, RankFailure, first_failure


def describe_death(rank: int, exit_code: int | None, *, at: float, step: int, log_tail: tuple[str, ...]) -> RankFailure:
    """Say what a rank died of when it could not say so itself.

    Args:
        exit_code: as ``multiprocessing.Process.exitcode``: the negative signal number for a death by signal.
    """
    if exit_code is not None and exit_code < 0:
        name = signal.Signals(-exit_code).name
        message, hint = f"the process was ended by {name}", _signal_hint(-exit_code)
    else:
        message = f"the process ended with exit code {exit_code} before its function returned"
        hint = "Something called os._exit, or a library ended the process."
    return RankFailure(rank, at, step, "RankDied", message, hint=hint, log_tail=log_tail)


def last_words(lines: Sequence[str]) -> tuple[str, ...]:
    """The end of a dead rank's log; of Python's crash report, the crash and the user's own frames."""
    crash = next((i for i, line in enumerate(lines) if line.startswith("Fatal Python error")), None)
    if crash is None:
        return tuple(map(_shorten, lines[-5:]))
    current = next((i for i, line in enumerate(lines) if line.startswith("Current thread")), crash)
    stack = itertools.takewhile(lambda line: line.startswith("  File"), lines[current + 1 :])
    frames = itertools.takewhile(lambda line: "/notebook_accel/launch/" not in line, stack)
    return (*lines[max(0, crash - 2) : crash + 1], *(line.strip() for line in itertools.islice(frames, 4)))


def _signal_hint(number: int) -> str:
    if number == signal.SIGKILL:
        return f"Most often the machine ran out of memory ({_memory()}). Use smaller batches or fewer ranks."
    if number == signal.SIGBUS:
        return "Most often /dev/shm is full. Use num_workers=0 in the DataLoader, or a larger /dev/shm."
    if number in (signal.SIGSEGV, signal.SIGABRT, signal.SIGILL, signal.SIGFPE):
        return "A native library crashed; its last words are below."
    return ""


def _memory() -> str:
    memory = psutil.virtual_memory()
    return f"{memory.available / 2**30:.1f} of {memory.total / 2**30:.1f} GB are free now"


def make_error(
    failures: Sequence[RankFailure],
    original: BaseException | None,
    *,
    size: int,
    log_path: str,
    returned: Sequence[int] = (),
) -> RankError:
    """One exception for a failed run: of the user's own type where that can be, and a ``RankError`` always.

    Args:
        failures: every rank's failure; the first in time that is no mere consequence is the cause.
        original: the exception of that first failure, rebuilt in the kernel (None: it could not be).
        returned: the ranks whose function had returned.
    """
    first = first_failure(failures)
    others = tuple(sorted((f for f in failures if f is not first), key=lambda f: f.rank))
    if first.consequence and returned:
        first = dataclasses.replace(first, hint=_left_alone(returned))
    error = _typed(first, original)
    error.rank, error.step, error.failure, error.others = first.rank, first.step, first, others
    error.report = render_report(first, others, size=size, log_path=log_path, returned=len(returned))
    return error


def _left_alone(returned: Sequence[int]) -> str:
    ranks = f"rank{'s' if len(returned) > 1 else ''} {', '.join(map(str, returned))}"
    return f"It waited for {ranks}, whose function had returned: all ranks must make the same collective calls."


def _typed(failure: RankFailure, original: BaseException | None) -> RankError:
    if failure.type_name == "RankDied":
        return RankDied()
    if not isinstance(original, Exception):
        return RankError()
    kind = type(original)
    try:
        names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
        mixed: Any = type(kind.__name__, (RankError, kind), names)
        error: RankError = _bare(mixed, original.args)
        error.args = original.args
        vars(error).update(vars(original))
    except Exception:
        # A class that cannot be a base beside RankError (its own metaclass or memory layout, or code of its own).
        error = RankError()
        error.__cause__ = original
        return error
    _copy_slots(original, error)
    return error


def _bare(kind: Any, args: tuple[Any, ...]) -> Any:
    """An instance whose ``__init__``, which may take anything, has not been called."""
    try:
        return kind.__new__(kind)
    except TypeError:
        return kind.__new__(kind, *args)


def _copy_slots(source: Any, target: Any) -> None:
    """Values that built-in exceptions keep outside ``__dict__`` (errno of OSError, name of ImportError, ...)."""
    for cls in type(source).__mro__:
        for name, member in vars(cls).items():
            if type(member).__name__ in ("member_descriptor", "getset_descriptor") and not name.startswith("__"):
                try:
                    setattr(target, name, getattr(source, name))
                except (AttributeError, TypeError):
                    continue


def render_report(
    first: RankFailure, others: Sequence[RankFailure], *, size: int, log_path: str, returned: int = 0
) -> str:
    """The text in the cell: what, where, the user's own lines, the other ranks in a line each.

    ``returned`` is how many ranks' functions had returned.
    """
    same = [f.rank for f in others if f.is_like(first)]
    alike = len(same) == size - 1 > 0
    where = (
        f"All {size} ranks failed alike; this is rank {first.rank}."
        if alike
        else _where(first, size, returned, len(others) + 1)
    )
    lines = [*map(_shorten, _cut(first.message.splitlines(), 6)), "", where, ""]
    for frame in first.frames:
        lines += [f"  {frame.file}, line {frame.line}, in {frame.function}"]
        lines += [f"      {frame.source}"] if frame.source else []
    lines += [_shorten(first.hint)] if first.hint else []
    lines += [f"  | {line}" for line in first.log_tail]
    lines += [] if alike else [f"  {line}" for line in _other_lines(others, same)]
    return "\n".join([*lines, f"  whole log: {log_path}"])


def _where(failure: RankFailure, size: int, returned: int, failed: int) -> str:
    """Which rank failed and when, and what became of the ranks that neither failed nor had returned."""
    where = f"Rank {failure.rank} of {size} failed" if size > 1 else "The rank failed"
    when = f" after {failure.step} training steps" if failure.step > 0 else ""
    stopped = size - returned - failed
    if stopped:
        rest = f"; the other {stopped} were stopped." if stopped > 1 else "; the other was stopped."
    else:
        rest = "; the others had finished." if returned and failed == 1 else "."
    return where + when + rest


def _other_lines(others: Sequence[RankFailure], same: Sequence[int]) -> list[str]:
    lines = [f"rank{'s' if len(same) > 1 else ''} {', '.join(map(str, same))}: the same error"] if same else []
    for failure in others:
        if failure.consequence:
            lines.append(f"rank {failure.rank}: lost its connection")
        elif failure.rank not in same:
            text = (failure.message.splitlines() or [""])[0][:100]
            lines.append(f"rank {failure.rank}: {failure.type_name}: {text}")
    return _cut(lines, 5)


def _cut(lines: list[str], most: int) -> list[str]:
    return lines if len(lines) <= most else [*lines[: most - 1], f"… {len(lines) - most + 1} more"]


def _shorten(text: str, limit: int = 400) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def in_the_users_words(failure: RankFailure) -> RankFailure:
    """The failure with its frames as the notebook's user knows them: which cell, and the line's text from here."""
    frames = tuple(
        Frame(place_name(f.file), f.line, f.function, (f.source or linecache.getline(f.file, f.line)).strip())
        for f in failure.frames
    )
    return dataclasses.replace(failure, frames=frames)


def place_name(path: str) -> str:
    """A file as the user knows it: "Cell In[3]" for a notebook cell, a path relative to here otherwise."""
    interactive = sys.modules.get("IPython.core.interactiveshell")
    shell = interactive.InteractiveShell._instance if interactive else None
    if shell is not None:
        number = _cell_number(shell, path)
        if number is not None:
            return f"Cell In[{number}]"
    relative = os.path.relpath(path) if os.path.isabs(path) else path
    return path if relative.startswith("..") else relative


def _cell_number(shell: Any, path: str) -> int | None:
    """The execution count of the cell whose code was compiled under this file name, newest first."""
    known = getattr(shell.compile, "_filename_map", {}).get(path)
    if known is not None:
        return int(known)
    history = shell.history_manager
    if history is None:
        return None
    for number in range(len(history.input_hist_raw) - 1, 0, -1):
        raw, parsed = history.input_hist_raw[number], history.input_hist_parsed[number]
        # The history keeps cells without the newline at their end, of which the name may have been made.
        if path in (shell.compile.get_code_name(raw + end, parsed, number) for end in ("", "\n")):
            return number
    return None
