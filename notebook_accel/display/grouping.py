"""Which metrics share a panel, and whether its scale is logarithmic."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

PHASES = frozenset(("train", "training", "eval", "evaluation", "val", "valid", "validation", "test", "dev", "holdout"))
_PARTS = re.compile(r"[/_.\-\s:]+")
_LOSSLIKE = re.compile(r"loss|perplexity|ppl|nll|error|mse|mae|rmse|cross.?entropy|grad.?norm", re.IGNORECASE)

_SCORE = re.compile(r"(^|[_/\W])(acc|accuracy|f1|auc|auroc|bleu|rouge|iou|reward|score|perplexity|ppl)", re.IGNORECASE)

LOG_SPAN = 100.0
LEAST = 1e-100


@dataclass(frozen=True, slots=True)
class Panel:
    """One plot: its title, and the (metric name, label) of each line."""

    title: str
    lines: tuple[tuple[str, str], ...]


def make_panels(names: Iterable[str]) -> list[Panel]:
    """Metrics that differ only by a train or eval prefix or suffix share a panel; losses come first."""
    groups: dict[str, list[tuple[str, str]]] = {}
    titles: dict[str, str] = {}
    for name in names:
        base, phase = split_phase(name)
        groups.setdefault(base.lower(), []).append((name, phase or name))
        titles.setdefault(base.lower(), base)
    panels = [Panel(titles[key] if len(lines) > 1 else lines[0][0], tuple(lines)) for key, lines in groups.items()]
    return sorted(panels, key=lambda panel: _order(panel.title))


def _order(title: str) -> int:
    return 0 if "loss" in title.lower() else 1 if _SCORE.search(title) else 2


def split_phase(name: str) -> tuple[str, str]:
    """("loss", "train") of "train_loss", "loss/train" and the like; the phase is "" for a bare name."""
    parts = [part for part in _PARTS.split(name) if part]
    for end, rest in ((0, slice(1, None)), (-1, slice(None, -1))):
        if len(parts) > 1 and parts[end].lower() in PHASES:
            return "_".join(parts[rest]), parts[end]
    return "_".join(parts) or name, ""


def wants_log(title: str, low: float, high: float) -> bool:
    """Whether a panel with finite values from ``low`` to ``high`` reads better on a logarithmic scale."""
    return bool(_LOSSLIKE.search(title)) and low > LEAST and high / low >= LOG_SPAN
