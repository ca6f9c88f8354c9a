-- The style sheet of a page of events. The page names its SHA-256 in the Content-Security-Policy: html/page.lua.
return [==[
:root {
  color-scheme: light dark;
  --page: #fbfbfa; --raised: #ffffff; --ink: #1d2025; --quiet: #667080; --line: #e3e5e8; --grid: #eef0f2;
  --normal: #3f7fbf; --warning: #d9622b; --suppressed: #8b929d; --focus: #3f7fbf;
  --text: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
  --code: ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #15171b; --raised: #1c1f25; --ink: #e7e9ec; --quiet: #98a1ae; --line: #2e333b; --grid: #23272e;
    --normal: #6aa9e6; --warning: #f0875a; --suppressed: #8d96a3; --focus: #6aa9e6;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 14px/1.45 var(--text); }
main { max-width: 1280px; margin: 0 auto; padding: 28px 24px 64px; }
h1 { font-size: 22px; line-height: 1.25; margin: 0 0 4px; font-weight: 650; letter-spacing: -0.01em; }
.quiet { color: var(--quiet); }
.facts { display: flex; flex-wrap: wrap; gap: 10px 32px; margin: 18px 0 20px; padding: 0; }
.fact { display: flex; flex-direction: column; }
.fact dt { order: 2; color: var(--quiet); font-size: 12px; }
.fact dd { order: 1; margin: 0; font-size: 20px; font-weight: 600; font-variant-numeric: tabular-nums; }
.controls { display: flex; flex-wrap: wrap; gap: 8px; align-items: center; margin: 0 0 12px; }
input, select, button { font: inherit; color: inherit; }
input[type="search"] { flex: 1 1 260px; padding: 7px 11px; border: 1px solid var(--line); border-radius: 7px; background: var(--raised); }
select, .toggle { padding: 6px 11px; border: 1px solid var(--line); border-radius: 7px; background: var(--raised); cursor: pointer; }
.toggle[aria-pressed="false"] { color: var(--quiet); text-decoration: line-through; }
.toggle::before { content: ""; display: inline-block; width: 9px; height: 9px; border-radius: 3px; margin-right: 7px; background: var(--normal); }
.toggle.warning::before { background: var(--warning); }
.toggle.plain::before { display: none; }
.toggle[aria-selected="true"] { border-color: var(--ink); font-weight: 600; }
:focus-visible { outline: 2px solid var(--focus); outline-offset: 1px; }
.panel { background: var(--raised); border: 1px solid var(--line); border-radius: 10px; overflow: hidden; }
.time { display: grid; grid-template-columns: 300px minmax(0, 1fr); border-bottom: 1px solid var(--line); position: sticky; top: 0; background: var(--raised); z-index: 3; }
.time > .quiet { padding: 10px 14px; font-size: 12px; align-self: end; }
.overview { position: relative; height: 76px; cursor: crosshair; touch-action: none; margin-right: 14px; user-select: none; }
.column { position: absolute; bottom: 20px; display: flex; flex-direction: column; justify-content: flex-end; height: 52px; }
.column i { display: block; background: var(--normal); }
.column i.warning { background: var(--warning); }
.tick { position: absolute; bottom: 0; font-size: 11px; line-height: 18px; color: var(--quiet); white-space: nowrap; transform: translateX(-50%); font-variant-numeric: tabular-nums; }
.tick.first { transform: none; } .tick.last { transform: translateX(-100%); }
.brush { position: absolute; top: 0; bottom: 20px; background: var(--focus); opacity: 0.18; }
.object { border-bottom: 1px solid var(--line); }
.object:last-child { border-bottom: 0; }
.object > header { padding: 9px 14px 3px; overflow-wrap: anywhere; }
.object > header b { font-weight: 600; }
.lane { display: grid; grid-template-columns: 300px minmax(0, 1fr); width: 100%; padding: 0; border: 0; background: none; text-align: left; cursor: pointer; align-items: center; min-height: 26px; }
.lane:hover { background: var(--grid); }
.lane .label { padding: 2px 14px 2px 26px; display: flex; flex-wrap: wrap; gap: 0 8px; line-height: 1.3; min-width: 0; }
.lane .reason { overflow-wrap: anywhere; min-width: 0; }
.lane .count { color: var(--quiet); margin-left: auto; font-variant-numeric: tabular-nums; }
.track { position: relative; align-self: stretch; margin-right: 14px; overflow: hidden; }
.rule { position: absolute; top: 0; bottom: 0; width: 1px; background: var(--grid); }
.bar { position: absolute; top: 50%; transform: translateY(-50%); min-width: 5px; border-radius: 3px; background: var(--normal); opacity: 0.9; }
.bar.once { width: 7px; margin-left: -3.5px; border-radius: 50%; }
.bar.warning { background: var(--warning); }
.shade { position: absolute; top: calc(50% - 10px); height: 20px; min-width: 3px; border: 1px solid var(--suppressed); border-radius: 3px; background: repeating-linear-gradient(135deg, var(--raised) 0 1px, var(--suppressed) 1px 3px, var(--raised) 3px 4px, transparent 4px 7px); }
.details { padding: 4px 14px 12px 26px; font-size: 13px; }
.details table { border-collapse: collapse; width: 100%; }
.details th { text-align: left; font-weight: 500; color: var(--quiet); font-size: 12px; }
.details th, .details td { padding: 3px 14px 3px 0; vertical-align: top; }
.details td { font-variant-numeric: tabular-nums; }
.details td.message { width: 60%; white-space: pre-wrap; overflow-wrap: anywhere; font-family: var(--code); font-size: 12px; }
bdi { unicode-bidi: isolate; }
.empty { padding: 40px 14px; text-align: center; color: var(--quiet); }
.more { display: block; width: 100%; padding: 10px; border: 0; border-top: 1px solid var(--line); background: none; cursor: pointer; }
.legend { display: flex; flex-wrap: wrap; gap: 6px 22px; margin: 12px 2px; font-size: 12px; color: var(--quiet); align-items: center; }
.legend span { display: inline-flex; gap: 7px; align-items: center; }
.legend span[hidden] { display: none; }
.legend .bar, .legend .shade { position: static; transform: none; display: inline-block; width: 20px; height: 12px; margin: 0; }
.legend .bar.once { width: 7px; height: 7px; }
@media (max-width: 760px) {
  main { padding: 18px 12px 40px; }
  .time, .lane { grid-template-columns: 150px minmax(0, 1fr); }
  .lane .label { padding-left: 14px; flex-direction: column; }
  .lane .count { font-size: 11px; margin-left: 0; }
}
@media print {
  .controls, .more { display: none; }
  .time { position: static; }
  .object { break-inside: avoid; }
  .bar, .column i, .shade { print-color-adjust: exact; }
}
]==]
