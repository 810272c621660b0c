"""The table of rank bars as HTML."""

from __future__ import annotations

from .rows import Row, Table
from .words import esc

# Digits for which every column has room, so that the bars seldom change their width, and letters of its title.
LEAST, LEAST_TITLE = 6, 13


def table_html(table: Table, rows: list[Row] | None = None, *, live: bool = False) -> str:
    """One table for the rows (by default those shown at once); columns without a value are left out, live ones stay."""
    rows = table.rows if rows is None else rows
    if not rows:
        return ""
    titles = {"count": "done", "rate": "rate", "left": "left", "metric": table.metric, "memory": "memory"}
    stay = ("count", "rate", "left") if live else ()
    used = [name for name in titles if name in stay or any(getattr(row, name) for row in rows)]
    head = "".join(
        f'<th class="nbacc-{name}" style="width:{_width(name, titles[name], rows)}ch" title="{esc(titles[name])}">'
        f"{esc(titles[name])}</th>"
        for name in used
    )
    body = "".join(_row(row, used) for row in rows)
    return (
        '<table class="nbacc-table"><thead><tr><th class="nbacc-rank">rank</th><th class="nbacc-doing"></th>'
        f'<th class="nbacc-barcell"></th>{head}</tr></thead><tbody>{body}</tbody></table>'
    )


def _width(name: str, title: str, rows: list[Row]) -> int:
    """Width of a column in digits, its margin included: what will fit when a count has come to its total, too."""
    longest = max((len(_widest(getattr(row, name))) for row in rows), default=0)
    return max(LEAST, longest, min(len(title), LEAST_TITLE)) + 3


def _widest(text: str) -> str:
    _, slash, total = text.partition("/")
    return f"{total}/{total}" if slash and " " not in text else text


def _row(row: Row, columns: list[str]) -> str:
    role = f'<span class="nbacc-role">{esc(row.role)}</span>' if row.role else ""
    cells = "".join(f'<td class="nbacc-{name}">{esc(getattr(row, name))}</td>' for name in columns)
    return (
        f'<tr class="nbacc-{row.tone}"><td class="nbacc-rank">{row.rank}</td>'
        f'<td class="nbacc-doing" title="{esc(row.doing)}"><span>{esc(row.doing)}</span>{role}</td>'
        f'<td class="nbacc-barcell">{_bar(row)}</td>{cells}</tr>'
    )


def _bar(row: Row) -> str:
    if row.fraction is not None:
        fill = f'<i style="width:{100 * row.fraction:.1f}%"></i>'
    else:
        fill = '<i class="nbacc-open"></i>' if row.moving else ""
    around = f'<div class="nbacc-around" title="{esc(row.around)}">{esc(row.around)}</div>' if row.around else ""
    return f'<div class="nbacc-bar">{fill}</div>{around}'


def toggle_html(table: Table) -> str:
    """A check box that shows all ranks, for a pane whose content changes while it is open ("" when all are shown)."""
    count = len(table.all_rows)
    return f'<label class="nbacc-note"><input type="checkbox"> all {count} ranks</label>' if count else ""


def more_html(table: Table) -> str:
    """All ranks one click away ("" when all are shown already)."""
    if not table.all_rows:
        return ""
    return f"<details><summary>all {len(table.all_rows)} ranks</summary>{table_html(table, table.all_rows)}</details>"
