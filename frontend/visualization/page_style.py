"""How pages look: on wide screens, on narrow ones, and on paper."""

STYLE = """
:root { --ink: #1d2733; --soft: #5b6876; --line: #d8dee5; --ground: #f5f7f9; --accent: #1f5f99; --bar: #cfe2f3;
  --bad: #b3261e; color-scheme: light; }
* { box-sizing: border-box; }
html { scroll-padding-top: 3.2rem; -webkit-text-size-adjust: 100%; }
body { margin: 0; color: var(--ink); background: white; font: 15px/1.5 system-ui, "Segoe UI", Roboto, "DejaVu Sans",
  Arial, sans-serif; }
header, main, footer { max-width: 1200px; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 1.5rem; }
h1 { margin: 0; font-size: 1.7rem; line-height: 1.25; overflow-wrap: anywhere; }
header p { margin: .25rem 0 1rem; color: var(--soft); overflow-wrap: anywhere; }
nav { position: sticky; top: 0; z-index: 3; background: white; border-block: 1px solid var(--line); overflow-x: auto;
  white-space: nowrap; padding: 0 max(1.25rem, calc((100vw - 1200px) / 2 + 1.25rem)); }
nav a { display: inline-block; padding: .6rem .1rem; margin-right: 1.1rem; color: var(--accent);
  text-decoration: none; }
nav a:hover, nav a:focus-visible { text-decoration: underline; }
h2 { margin: 2rem 0 .75rem; font-size: 1.25rem; }
h3 { margin: 1.25rem 0 .5rem; font-size: 1rem; }
p { margin: .5rem 0; }
footer { margin-top: 2.5rem; padding-block: 1rem; border-top: 1px solid var(--line); color: var(--soft);
  font-size: .85rem; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: .75rem; margin: 1rem 0; }
.tiles div { padding: .6rem .8rem; background: var(--ground); border: 1px solid var(--line); border-radius: 6px; }
.tiles dt { color: var(--soft); font-size: .85rem; }
.tiles dd { margin: 0; font-size: 1.1rem; white-space: nowrap; font-weight: 600; font-variant-numeric: tabular-nums; }
.bad dd, .note.bad { color: var(--bad); }
.facts { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.25rem; margin: .75rem 0; }
.facts dt { color: var(--soft); }
.facts dd { margin: 0; min-width: 0; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
.note { padding-left: .75rem; border-left: 3px solid var(--line); color: var(--soft); overflow-wrap: anywhere; }
.note.bad { border-color: var(--bad); }
.scroll { overflow: auto; max-height: 85vh; border: 1px solid var(--line); border-radius: 6px; }
table { border-collapse: separate; border-spacing: 0; width: 100%; font-size: .87rem; line-height: 1.35; }
th, td { padding: .3rem .6rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line);
  font-weight: 400; overflow-wrap: break-word; }
tbody tr:last-child > * { border-bottom: 0; }
thead th { position: sticky; top: 0; z-index: 2; background: var(--ground); font-weight: 600; white-space: nowrap; }
tbody th { position: sticky; left: 0; background: white; overflow-wrap: anywhere; width: 24%; min-width: 7rem; }
.short { white-space: nowrap; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
td.bar { background: linear-gradient(to right, var(--bar) var(--part), transparent 0);
  -webkit-print-color-adjust: exact; print-color-adjust: exact; }
figure { margin: .75rem 0; }
figure .scroll { padding: .25rem; }
figure .scroll > svg { display: block; margin: 0 auto; }
figcaption { margin-top: .3rem; color: var(--soft); font-size: .87rem; }
.pieces { display: none; }

@media screen and (max-width: 640px) {
  body { font-size: 14px; }
  header, main, footer { padding-inline: .8rem; }
  nav { padding-inline: .8rem; }
  .facts { grid-template-columns: 1fr; gap: 0; }
  .facts dt { font-size: .85em; }
  .facts dd { margin-bottom: .4rem; }
  tbody th { min-width: 9rem; max-width: 44vw; border-right: 1px solid var(--line); }
  tbody td:last-child:not(.short) { min-width: 14rem; }
}

@page { size: A4; margin: 14mm; }
@page lying { size: A4 landscape; }
@media print {
  html { font-size: 10pt; }
  body { font-size: 9.5pt; }
  header, main, footer { max-width: none; padding: 0; }
  nav { display: none; }
  h1 { font-size: 16pt; }
  h2 { font-size: 12.5pt; }
  h2, h3 { break-after: avoid; }
  .tiles { grid-template-columns: repeat(4, 1fr); }
  .tiles div, .facts, .note, tr { break-inside: avoid; }
  .scroll { overflow: visible; max-height: none; border: 0; }
  table { font-size: 7.6pt; }
  thead { display: table-header-group; }
  th, td { padding: 2pt 4pt; overflow-wrap: anywhere; }
  thead th, tbody th { position: static; min-width: 0; }
  tbody th { width: auto; }
  tbody th, tbody td:last-child:not(.short) { min-width: 96pt; }
  thead th:not(.short) { white-space: normal; }
  figure .scroll { position: absolute; height: 0; overflow: hidden; padding: 0; }
  .pieces { display: block; }
  .pieces svg { display: block; break-inside: avoid; max-width: 100%; }
  figure.lying { page: lying; }
  figcaption { break-before: avoid; }
}
"""
