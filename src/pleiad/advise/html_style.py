"""The look of the report as a page: colours of the explorer, light and dark, and nothing from elsewhere."""

STYLE = """
:root { color-scheme: light dark; --canvas: #f4f6f9; --surface: #fff; --sunken: #ebeef3; --text: #141a24;
  --muted: #465063; --edge: #d5dae2; --ru: #0067a8; --storage: #00785a; --refused: #be3f07; --good: #0b6b4f;
  --warn: #855000; --bad: #b3330b; --good-soft: #f0f9f5; --bad-soft: #fdf2ec;
  --h0: #ebeef3; --h1: #d6e4f0; --h2: #b3d0e6; --h3: #7fb2d8; --h4: #428fc4; --h5: #10699f; --h6: #0a3f63; }
@media (prefers-color-scheme: dark) { :root { --canvas: #0c111b; --surface: #141b28; --sunken: #0f1520;
  --text: #e8edf5; --muted: #b0bcce; --edge: #2b3547; --ru: #58aeea; --storage: #3dbe97; --refused: #ff7f50;
  --good: #5ed3a8; --warn: #f3be5a; --bad: #ff9471; --good-soft: #11251f; --bad-soft: #2b1a14;
  --h0: #0f1520; --h1: #14283a; --h2: #1a3f5c; --h3: #225b85; --h4: #337fb5; --h5: #58aeea; --h6: #b8deff; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--canvas); color: var(--text); font: 14px/1.5 system-ui, sans-serif; }
main { max-width: 1200px; margin: 0 auto; padding: 32px 24px 48px; }
h1 { font-size: 22px; line-height: 1.3; margin: 0 0 8px; } h2 { font-size: 17px; margin: 0 0 12px; }
h3 { font-size: 13px; margin: 20px 0 6px; color: var(--muted); font-weight: 550; }
code, .key { font-family: ui-monospace, Consolas, monospace; overflow-wrap: anywhere; }
.panel { background: var(--surface); border: 1px solid var(--edge); border-radius: 12px; padding: 16px 20px;
  margin-bottom: 16px; overflow-x: auto; }
.verdict { background: var(--good-soft); border-color: var(--good); }
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: 16px; } .pair .panel { min-width: 0; }
@media (max-width: 860px) { .pair { grid-template-columns: 1fr; } }
.badge { font-size: 12px; padding: 2px 8px; border-radius: 8px; background: var(--sunken); margin-left: 8px; }
.good { color: var(--good); } .warn { color: var(--warn); } .bad { color: var(--bad); }
.tiles { display: flex; gap: 32px; flex-wrap: wrap; } .tiles b { display: block; font-size: 22px; }
.muted { color: var(--muted); } ul { list-style: none; margin: 12px 0 0; padding: 0; }
li { padding-left: 24px; position: relative; margin-bottom: 6px; } li::before { position: absolute; left: 4px; }
li.good::before { content: "✓"; } li.warn::before { content: "!"; } li.bad::before { content: "✗"; }
li span { color: var(--text); }
table { border-collapse: collapse; width: 100%; font-size: 13px; font-variant-numeric: tabular-nums; }
th { text-align: left; color: var(--muted); font-weight: 550; } th, td { padding: 6px 8px; vertical-align: top;
  border-bottom: 1px solid var(--edge); } td.number, th.number { text-align: right; white-space: nowrap; }
td.value { overflow-wrap: anywhere; min-width: 11em; max-width: 22em; }
.bar { background: var(--sunken); border-radius: 4px; height: 10px; min-width: 80px; }
.bar i { display: block; height: 10px; border-radius: 4px; background: var(--ru); }
.bar i.storage { background: var(--storage); } .bar i.over { background: var(--refused); }
.bars { display: grid; grid-template-columns: 3em 1fr 8em; gap: 4px 8px; align-items: center; }
.bars span:nth-child(3n) { text-align: right; } .heat { display: grid; gap: 1px; }
.heat i { height: 9px; } .h0 { background: var(--h0); } .h1 { background: var(--h1); } .h2 { background: var(--h2); }
.h3 { background: var(--h3); } .h4 { background: var(--h4); } .h5 { background: var(--h5); }
.h6 { background: var(--h6); }
"""
