"""The log as HTML: a badge for the ranks, then the line."""

from __future__ import annotations

from ..progress.log import LogEntry
from ..progress.model import RunModel
from . import words
from .words import esc

LIVE_LINES = 200
FINAL_LINES = 500
OPEN_UP_TO = 12


def badge(entry: LogEntry) -> str:
    """Who wrote a line: "r2", or "×4" for several ranks."""
    return f"{'r' if len(entry.ranks) == 1 else ''}{words.some_ranks(entry.ranks)}"


def lines_html(model: RunModel, most: int) -> str:
    """The last ``most`` entries and the lines that are still being written."""
    lines = [_line(badge(entry), words.ranks(entry.ranks), entry.text, entry.tone) for entry in model.log.tail(most)]
    lines += [_line(f"r{rank}", f"rank {rank}", text, "plain") for rank, text in model.log.open_lines()]
    return "".join(lines)


def _line(who: str, title: str, text: str, tone: str) -> str:
    return (
        f'<span class="nbacc-l nbacc-l{tone}"><span class="nbacc-who" title="{esc(title)}">{esc(who)}</span> '
        f"<span>{esc(text)}\n</span></span>"
    )


def log_html(model: RunModel, *, most: int = LIVE_LINES) -> str:
    """The pane that stays at its newest line while the run goes on ("" before any output)."""
    lines = lines_html(model, most)
    return f'<div class="nbacc-log"><pre class="nbacc-lines">{lines}</pre></div>' if lines else ""


def final_log_html(model: RunModel) -> str:
    """The whole ring, folded away when it is long."""
    lines = lines_html(model, FINAL_LINES)
    if not lines:
        return ""
    total = model.log.total
    left_out = f", the last {FINAL_LINES} shown" if total > FINAL_LINES else ""
    is_open = " open" if total <= OPEN_UP_TO else ""
    return (
        f"<details{is_open}><summary>log · {total} line{'' if total == 1 else 's'}{left_out}</summary>"
        f'<div class="nbacc-log"><pre class="nbacc-lines">{lines}</pre></div></details>'
    )
