"""The looks of the HTML: one palette, light and dark, and only our own classes."""

PALETTE = """
--fce-ground: #ffffff; --fce-ink: #1f2328; --fce-quiet: #656d76; --fce-line: #d5dae0;
--fce-mark: #dbeafe; --fce-mark-ink: #0b4a8f; --fce-note: #7a4b00; --fce-wash: #f6f8fa;
"""

DARK_PALETTE = """
--fce-ground: #14181d; --fce-ink: #e4e8ec; --fce-quiet: #9aa4af; --fce-line: #343c46;
--fce-mark: #123a63; --fce-mark-ink: #b9dcff; --fce-note: #f0c674; --fce-wash: #1c2229;
"""

FRAGMENT = f"""
.fce-box {{ {PALETTE} color-scheme: light dark; background: var(--fce-ground); color: var(--fce-ink);
  font: 14px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; padding: 4px 2px; }}
@media (prefers-color-scheme: dark) {{ .fce-box {{ {DARK_PALETTE} }} }}
.fce-box .fce-scroll {{ overflow-x: auto; margin: 0 0 18px; }}
.fce-box .fce-table {{ border-collapse: collapse; margin: 0; border: 0; font-variant-numeric: tabular-nums; }}
.fce-box .fce-table caption {{ caption-side: top; text-align: left; font-weight: 600; color: var(--fce-ink);
  padding: 0 0 6px; white-space: nowrap; }}
.fce-box .fce-table tr {{ background: transparent; }}
.fce-box .fce-table th, .fce-box .fce-table td {{ text-align: left; vertical-align: top; padding: 5px 16px 5px 0;
  border: 0; border-bottom: 1px solid var(--fce-line); color: var(--fce-ink); background: transparent;
  max-width: 24em; overflow-wrap: break-word; font-weight: 400; }}
.fce-box .fce-table thead th {{ color: var(--fce-quiet); font-size: 12px; font-weight: 600; vertical-align: bottom; }}
.fce-box .fce-table tbody th {{ font-weight: 600; white-space: nowrap; }}
.fce-box .fce-table .fce-quiet {{ color: var(--fce-quiet); }}
.fce-box .fce-table tfoot th, .fce-box .fce-table tfoot td {{ border-bottom: 0; color: var(--fce-quiet); }}
.fce-box .fce-to {{ background: var(--fce-mark); color: var(--fce-mark-ink); font-weight: 600; padding: 1px 5px;
  border-radius: 4px; }}
.fce-box .fce-heading {{ font-weight: 600; margin: 0 0 2px; }}
.fce-box .fce-verdict {{ margin: 0 0 18px; color: var(--fce-ink); }}
.fce-box .fce-status {{ font: 12px/1.4 ui-monospace, SFMono-Regular, Menlo, monospace; color: var(--fce-quiet);
  border: 1px solid var(--fce-line); border-radius: 4px; padding: 1px 5px; margin-right: 6px; }}
.fce-box .fce-summary {{ margin: 0; color: var(--fce-quiet); font-size: 13px; }}
.fce-box .fce-note {{ margin: 4px 0 0; color: var(--fce-note); font-size: 13px; }}
"""

PAGE = f"""
:root {{ {PALETTE} color-scheme: light dark; }}
@media (prefers-color-scheme: dark) {{ :root {{ {DARK_PALETTE} }} }}
* {{ box-sizing: border-box; }}
body {{ margin: 0; background: var(--fce-ground); color: var(--fce-ink); -webkit-text-size-adjust: 100%;
  font: 17px/1.6 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }}
main {{ max-width: 60rem; margin: 0 auto; padding: 3rem 1.25rem 5rem; }}
h1 {{ font-size: clamp(1.7rem, 5vw, 2.4rem); line-height: 1.15; letter-spacing: -0.02em; margin: 0 0 1.5rem;
  text-wrap: balance; overflow-wrap: break-word; }}
h2 {{ font-size: 1.3rem; line-height: 1.3; letter-spacing: -0.01em; margin: 0 0 1rem; overflow-wrap: break-word; }}
section {{ border-top: 1px solid var(--fce-line); padding: 1.75rem 0 1rem; overflow-x: auto; }}
nav ul {{ list-style: none; display: flex; flex-wrap: wrap; gap: 0.25rem 1.25rem; margin: 0 0 1.75rem; padding: 0;
  font-size: 0.95rem; }}
p, ul, ol {{ max-width: 42rem; }}
a {{ color: var(--fce-mark-ink); }}
code, pre {{ font: 0.88em/1.5 ui-monospace, SFMono-Regular, Menlo, monospace; }}
code {{ background: var(--fce-wash); border-radius: 4px; padding: 0.1em 0.3em; }}
pre {{ overflow-x: auto; padding: 0.9rem 1rem; border-radius: 8px; background: var(--fce-wash); }}
pre code {{ padding: 0; background: none; }}
.fce-cards {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(9.5rem, 1fr)); gap: 0.75rem;
  margin: 0 0 1.25rem; }}
.fce-cards div {{ display: flex; flex-direction: column-reverse; justify-content: flex-end; padding: 0.8rem 1rem;
  border-radius: 8px; background: var(--fce-wash); }}
.fce-cards dt {{ color: var(--fce-quiet); font-size: 0.82rem; line-height: 1.35; }}
.fce-cards dd {{ margin: 0; font-size: 1.5rem; font-weight: 650; font-variant-numeric: tabular-nums; }}
.fce-list {{ border-collapse: collapse; font-size: 0.9rem; }}
.fce-list th, .fce-list td {{ text-align: left; vertical-align: top; padding: 0.35rem 1rem 0.35rem 0;
  border-bottom: 1px solid var(--fce-line); overflow-wrap: anywhere; }}
.fce-list thead th {{ color: var(--fce-quiet); font-size: 0.8rem; }}
.fce-list tbody th {{ white-space: nowrap; font-weight: 600; }}
.fce-figure {{ margin: 0 0 1rem; }}
.fce-figure img {{ border-radius: 8px; }}
@media print {{ main {{ max-width: none; padding: 0; }} nav {{ display: none; }} }}
"""
