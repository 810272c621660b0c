"""The run in plain text: for terminals, and where nothing richer is shown."""

from __future__ import annotations

from ..contracts.errors import RankFailure
from ..progress.model import RunModel
from . import words
from .failure import one_line, place, what
from .header import notes
from .rows import Row, make_table


def title(model: RunModel) -> str:
    """Name, device line, state and elapsed time in one line."""
    when = f" {'after ' if model.over else ''}{words.clock(model.elapsed)}" if model.status != "starting" else ""
    return " · ".join(part for part in (model.name, model.line, model.status + when) if part)


def row_text(row: Row, metric: str) -> str:
    """One rank in one line."""
    shown = f"{metric} {row.metric}" if row.metric else ""
    left = f"{row.left} left" if row.left and row.moving else ""
    parts = (f"rank {row.rank}", row.doing, row.around, row.count, row.rate, left, shown, row.memory)
    return "  ".join(part for part in parts if part.strip())


def metrics_line(model: RunModel) -> str:
    """The last mean of every metric: "loss 0.318 · lr 1e-3"."""
    shown = [f"{name} {words.value(model.history[name].last)}" for name in list(model.history)[:12]]
    return " · ".join(shown)


def summary_text(model: RunModel, *, frames: bool = True) -> str:
    """The state of the run in a few lines of plain text; ``frames`` shows where in the code a rank failed."""
    table = make_table(model)
    lines = [title(model), *notes(model)]
    if first := model.failure:
        lines += failure_lines(first) if frames else [one_line(first)]
        lines += [one_line(other) for other in model.failures if other is not first and not other.consequence]
    lines += [row_text(row, table.metric) for row in table.rows]
    if table.all_rows:
        lines.append(f"({len(table.rows)} of {len(table.all_rows)} ranks)")
    if metrics := metrics_line(model):
        lines.append(f"last values: {metrics}")
    return "\n".join(lines)


def failure_lines(first: RankFailure) -> list[str]:
    """A failure with its frames."""
    message = f": {first.message.strip()}" if first.message.strip() else ""
    lines = [what(first), f"  {first.type_name}{message}"]
    for frame in first.frames[-8:]:
        lines.append(f"  {place(frame)}")
        if frame.source:
            lines.append(f"      {frame.source.strip()}")
    return [*lines, f"  {first.hint}"] if first.hint else lines
