"""The whole screen as one piece of HTML that needs nothing else."""

from __future__ import annotations

import base64

from ..progress.model import RunModel
from .failure import failure_html
from .header import header_html, notes_html
from .logpane import final_log_html, log_html
from .outputs import outputs_html
from .rows import make_table
from .style import STYLE
from .table import more_html, table_html


def render_html(model: RunModel, *, figure: bytes | None) -> str:
    """A static snapshot of the run; ``figure`` is the plot as PNG."""
    table = make_table(model)
    bars = table_html(table, live=not model.over) + more_html(table)
    log = final_log_html(model) if model.over else log_html(model)
    return (
        f'{STYLE}<div class="nbacc">{header_html(model)}{notes_html(model)}{failure_html(model)}'
        f"{bars}{figure_html(figure)}{log}{outputs_html(model)}</div>"
    )


def figure_html(figure: bytes | None) -> str:
    """The plot as an image inside the page."""
    if not figure:
        return ""
    encoded = base64.b64encode(figure).decode("ascii")
    return f'<div class="nbacc-plot"><img alt="logged metrics" src="data:image/png;base64,{encoded}"></div>'
