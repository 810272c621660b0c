"""The top line: what runs, where, for how long; and the launcher's own notes."""

from __future__ import annotations

from ..progress.model import RunModel
from . import words
from .words import esc

LEFT_AFTER = 5.0


def header_html(model: RunModel) -> str:
    """State, name, device line, elapsed and remaining time."""
    left = model.remaining() if model.status == "running" and model.elapsed >= LEFT_AFTER else None
    ahead = f' <span class="nbacc-dim">· about {words.roughly(left)} left</span>' if left else ""
    status = "failed" if model.failures and not model.over else model.status
    name = f"<span>{esc(model.name)}</span>" if model.name else ""
    # The spaces are for pages that leave out the style sheet.
    return (
        f'<div class="nbacc-head nbacc-{esc(status)}"><b class="nbacc-state"><span class="nbacc-dot"></span>'
        f'{esc(status)}</b> {name} <span class="nbacc-dim">{esc(model.line)}</span> '
        f'<span class="nbacc-time">{words.clock(model.elapsed)}{ahead}</span></div>'
    )


def notes(model: RunModel) -> list[str]:
    """The lines under the header."""
    reason = model.reason if model.over and not model.failures else ""
    return [line for line in (model.status_text, reason, model.why, *model.notice) if line]


def notes_html(model: RunModel) -> str:
    """The lines under the header, as HTML ("" when there are none)."""
    return "".join(f'<div class="nbacc-note">{esc(line)}</div>' for line in notes(model))
