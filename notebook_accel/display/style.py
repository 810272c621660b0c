"""The look: one scoped style sheet that holds on light and dark pages, and in exports without any theme."""

from __future__ import annotations

PREFIX = "nbacc"

# Text takes the page's own colour; greys are see-through, so that they work on any ground.
CSS = """
.nbacc{--nbacc-blue:#2f7fc1;--nbacc-green:#2c9a67;--nbacc-red:#d6453d;--nbacc-amber:#c98500;--nbacc-amber-text:#a87000;
 --nbacc-line:rgba(128,128,128,.28);--nbacc-fill:rgba(128,128,128,.13);
 color:var(--jp-ui-font-color1,inherit);
 font:13px/1.45 var(--jp-ui-font-family,system-ui,-apple-system,"Segoe UI",Roboto,sans-serif);
 font-variant-numeric:tabular-nums;max-width:960px;margin:2px 0}
.jp-OutputArea-output .nbacc-box{padding-right:20px;max-width:980px!important}
.nbacc-hidden{display:none!important}
.nbacc *{box-sizing:border-box}
.nbacc-head{display:flex;flex-wrap:wrap;align-items:baseline;gap:2px 14px;padding:3px 0 5px}
.nbacc-head b{font-weight:600}
.nbacc-dot{display:inline-block;width:9px;height:9px;border-radius:50%;margin-right:7px;background:var(--nbacc-blue)}
.nbacc-finished .nbacc-dot{background:var(--nbacc-green)}
.nbacc-failed .nbacc-dot{background:var(--nbacc-red)}
.nbacc-stopped .nbacc-dot,.nbacc-stopping .nbacc-dot{background:var(--nbacc-amber)}
.nbacc-starting .nbacc-dot{background:rgba(128,128,128,.6)}
.nbacc-failed .nbacc-state{color:var(--nbacc-red)}
.nbacc-stopped .nbacc-state,.nbacc-stopping .nbacc-state{color:var(--nbacc-amber-text)}
.nbacc-dim{opacity:.66}
.nbacc-time{margin-left:auto;white-space:nowrap}
.nbacc-note{font-size:12px;opacity:.75;padding:0 0 3px}
.nbacc table.nbacc-table{border-collapse:collapse;border-spacing:0;width:100%;margin:2px 0 6px;border:0;
 table-layout:fixed;font-size:13px;color:inherit;background:none}
.nbacc .nbacc-table tr,.nbacc .nbacc-table tr:nth-child(even),.nbacc .nbacc-table tr:hover{background:none}
.nbacc .nbacc-table th,.nbacc .nbacc-table td{border:0;padding:2px 0 2px 14px;text-align:right;white-space:nowrap;
 vertical-align:middle;max-width:none;background:none;color:inherit;line-height:1.45}
.nbacc .nbacc-table th{font-weight:400;font-size:11.5px;opacity:.6;padding-bottom:3px;
 border-bottom:1px solid var(--nbacc-line)}
.nbacc .nbacc-table tbody tr:first-child td{padding-top:5px}
.nbacc .nbacc-table th{overflow:hidden;text-overflow:ellipsis}
.nbacc .nbacc-table td.nbacc-rank,.nbacc .nbacc-table th.nbacc-rank{padding-left:0;width:2.6em}
.nbacc .nbacc-table td.nbacc-doing,.nbacc .nbacc-table th.nbacc-doing{text-align:left;width:24%;overflow:hidden;
 text-overflow:ellipsis}
.nbacc .nbacc-table td.nbacc-barcell,.nbacc .nbacc-table th.nbacc-barcell{text-align:left;width:auto}
.nbacc{container-type:inline-size}
@container (max-width:600px){.nbacc .nbacc-table .nbacc-memory{display:none}}
@container (max-width:500px){.nbacc .nbacc-table .nbacc-rate{display:none}
 .nbacc .nbacc-table td,.nbacc .nbacc-table th{padding-left:6px}}
@container (max-width:400px){.nbacc .nbacc-table .nbacc-left,.nbacc .nbacc-table .nbacc-metric{display:none}}
.nbacc label.nbacc-note{cursor:pointer;display:inline-flex;align-items:center;gap:6px}
.nbacc label.nbacc-note input{margin:0}
@supports selector(:has(*)){.nbacc-all{display:none!important}
.nbacc-toggle:has(input:checked)+.nbacc-all{display:flex!important}}
.nbacc-bar{height:8px;border-radius:4px;background:var(--nbacc-fill);overflow:hidden}
.nbacc-bar i{display:block;height:100%;border-radius:4px;background:var(--nbacc-blue)}
.nbacc-quiet .nbacc-bar i{background:var(--nbacc-green)}
.nbacc-warn .nbacc-bar i{background:var(--nbacc-amber)}
.nbacc-bad .nbacc-bar i{background:var(--nbacc-red)}
.nbacc-off .nbacc-bar i{background:rgba(128,128,128,.55)}
.nbacc-bar i.nbacc-open{width:100%;
 background:repeating-linear-gradient(115deg,var(--nbacc-blue) 0 6px,transparent 6px 12px);
 opacity:.45}
.nbacc-warn .nbacc-doing>span:first-child{color:var(--nbacc-amber-text)}
.nbacc-bad .nbacc-doing>span:first-child{color:var(--nbacc-red)}
.nbacc-around{font-size:11px;line-height:1.3;opacity:.66;margin-top:2px;overflow:hidden;text-overflow:ellipsis}
.nbacc-role{font-size:11px;opacity:.62;margin-left:8px;padding:0 5px;
 border:1px solid var(--nbacc-line);border-radius:7px}
.nbacc-plot img{display:block;width:100%;max-width:960px;height:auto;background:none}
.nbacc details{margin:3px 0}
.nbacc summary{cursor:pointer;font-size:12px;opacity:.75;user-select:none}
.nbacc-log{max-height:235px;overflow:auto;display:flex;flex-direction:column-reverse;
 border-top:1px solid var(--nbacc-line);
 margin-top:4px}
.nbacc pre.nbacc-lines{flex:none;margin:0;padding:4px 0 0;border:0;background:none;color:inherit;overflow:visible;
 white-space:pre-wrap;word-break:normal;overflow-wrap:anywhere;
 font:12px/1.5 var(--jp-code-font-family,ui-monospace,SFMono-Regular,Menlo,Consolas,monospace)}
.nbacc-l{display:grid;grid-template-columns:3.6em minmax(0,1fr);align-items:baseline}
.nbacc-who{font-size:11px;line-height:1;opacity:.6;user-select:none}
.nbacc-lwarning{color:var(--nbacc-amber-text)}
.nbacc-lerror{color:var(--nbacc-red)}
.nbacc-lnote{opacity:.6;font-style:italic}
.nbacc-error{border-left:3px solid var(--nbacc-red);background:rgba(214,69,61,.07);border-radius:0 4px 4px 0;
 padding:7px 12px;margin:3px 0 8px}
.nbacc-error .nbacc-what{color:var(--nbacc-red);font-weight:600}
.nbacc .nbacc-error pre{margin:5px 0 2px;padding:0;border:0;background:none;color:inherit;white-space:pre-wrap;
 word-break:normal;overflow-wrap:anywhere;
 font:12px/1.5 var(--jp-code-font-family,ui-monospace,SFMono-Regular,Menlo,Consolas,monospace)}
.nbacc-where{opacity:.6}
.nbacc-shown{margin:6px 0;display:grid;grid-template-columns:3.6em minmax(0,1fr)}
.nbacc-shown img{max-width:100%;height:auto}
.nbacc .nbacc-shown pre{margin:0;background:none;color:inherit;white-space:pre-wrap}
.nbacc-shown>div{min-width:0;overflow-x:auto}
.nbacc-shown table.dataframe{border:0;border-collapse:collapse;font-size:12px;margin:0}
.nbacc-shown table.dataframe th,.nbacc-shown table.dataframe td{border:0;padding:3px 8px;text-align:right}
.nbacc-shown table.dataframe thead{border-bottom:1px solid var(--nbacc-line)}
"""

STYLE = f"<style>{' '.join(CSS.split(chr(10)))}</style>"
