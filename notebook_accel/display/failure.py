"""The error panel: which rank, at which step, why and where in the user's code."""

from __future__ import annotations

from ..contracts.errors import Frame, RankFailure
from ..progress.model import RunModel
from . import words
from .words import esc

MOST_FRAMES = 8
MOST_MESSAGE = 2_000
MOST_OTHERS = 16


def failure_html(model: RunModel, *, tail: bool = True) -> str:
    """The panel ("" when no rank failed); ``tail`` adds the last output of the failed rank."""
    first = model.failure
    if first is None:
        return ""
    hint = f'<div class="nbacc-hint">{esc(first.hint)}</div>' if first.hint else ""
    return (
        f'<div class="nbacc-error"><div><span class="nbacc-what">{esc(what(first))}</span></div>'
        f"<pre><b>{esc(first.type_name)}</b>{esc(_message(first))}</pre>{hint}{_frames(first)}"
        f"{_others(model, first)}{_tail(first) if tail else ''}</div>"
    )


def what(failure: RankFailure) -> str:
    """Who failed and when: "rank 1 failed at step 312"."""
    return f"rank {failure.rank} failed" + (f" at step {failure.step}" if failure.step > 0 else "")


def one_line(failure: RankFailure) -> str:
    """A failure in one line, without its frames."""
    message = failure.message.strip().splitlines()
    first = f": {message[0]}" if message else ""
    return f"{what(failure)}: {failure.type_name}{first}"[:300]


def _message(failure: RankFailure) -> str:
    message = failure.message.strip()
    cut = message if len(message) <= MOST_MESSAGE else message[:MOST_MESSAGE] + " …"
    return f": {cut}" if cut else ""


def place(frame: Frame) -> str:
    """Where a frame stands: "train, cell or file, line 12"."""
    return f"{frame.file}:{frame.line} in {frame.function}"


def _frames(failure: RankFailure) -> str:
    frames = failure.frames[-MOST_FRAMES:]
    if not frames:
        return ""
    lines = [_frame(frame) for frame in frames]
    left_out = len(failure.frames) - len(frames)
    above = f'<span class="nbacc-where">{left_out} frames above</span>\n' if left_out else ""
    return f"<pre>{above}{''.join(lines).rstrip()}</pre>"


def _frame(frame: Frame) -> str:
    source = f"    {esc(frame.source.strip())}\n" if frame.source else ""
    return f'<span class="nbacc-where">{esc(place(frame))}</span>\n{source}'


def _others(model: RunModel, first: RankFailure) -> str:
    others = [failure for failure in model.failures if failure is not first]
    followed = [failure for failure in others if failure.consequence]
    alike = [failure for failure in others if failure not in followed and failure.is_like(first)]
    causes = [failure for failure in others if failure not in followed and failure not in alike][:MOST_OTHERS]
    lines = "".join(f"<div>{esc(one_line(failure))}</div>" for failure in causes)
    if alike:
        lines = f"<div>{esc(words.ranks([failure.rank for failure in alike]))}: the same error</div>{lines}"
    if followed:
        names = words.ranks([failure.rank for failure in followed])
        inner = "".join(f"<div>{esc(one_line(failure))}</div>" for failure in followed[:MOST_OTHERS])
        lines += f"<details><summary>{esc(names)} failed because of it</summary>{inner}</details>"
    return lines


def _tail(failure: RankFailure) -> str:
    if not failure.log_tail:
        return ""
    text = esc("\n".join(failure.log_tail))
    return f"<details><summary>last output of rank {failure.rank}</summary><pre>{text}</pre></details>"
