"""What ranks displayed, as HTML."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..progress.model import RunModel
from ..progress.shelf import Shown
from . import words
from .words import esc

_BASE64 = re.compile(r"[^A-Za-z0-9+/=]")
_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")


def outputs_html(model: RunModel) -> str:
    """Every display once, with the ranks that showed it ("" when there are none)."""
    groups: list[tuple[Shown, list[int]]] = []
    for item in model.shelf:
        same = next((ranks for known, ranks in groups if known.data == item.data and item.rank not in ranks), None)
        if same is None:
            groups.append((item, [item.rank]))
        else:
            same.append(item.rank)
    dropped = model.shelf.dropped
    above = f'<div class="nbacc-note">{dropped} older displays are not shown</div>' if dropped else ""
    return above + "".join(_shown(item.data, ranks) for item, ranks in groups)


def _shown(data: Mapping[str, str], ranks: list[int]) -> str:
    who = f"{'r' if len(ranks) == 1 else ''}{words.some_ranks(ranks)}"
    return (
        f'<div class="nbacc-shown"><span class="nbacc-who" title="{esc(words.ranks(ranks))}">{esc(who)}</span>'
        f"<div>{bundle_html(data)}</div></div>"
    )


def bundle_html(data: Mapping[str, str]) -> str:
    """The richest form of a MIME bundle; HTML is the user's own and goes in as it is."""
    if "text/html" in data:
        return str(data["text/html"])
    for kind in _IMAGES:
        if kind in data:
            return f'<img alt="figure" src="data:{kind};base64,{_BASE64.sub("", str(data[kind]))}">'
    if "image/svg+xml" in data:
        return str(data["image/svg+xml"])
    for kind in ("text/markdown", "text/latex", "text/plain"):
        if kind in data:
            return f"<pre>{esc(data[kind])}</pre>"
    return f"<pre>{esc(', '.join(data) or 'nothing')}</pre>"
