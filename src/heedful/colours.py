"""The colours of scores, and the stylesheet that HTML fragments carry.

Signed scores are blue (for the target) and orange with a dotted underline (against it), two colours that
people with any common colour blindness can tell apart; scores without a sign are purple. Each colour has
`LEVELS` strengths on a light and on a dark surface. Text on every one of them has a contrast of at least
4.5 : 1 (WCAG 2.2, 1.4.3), which the tests compute.
"""

from typing import Literal

Scheme = Literal["light", "dark"]
Sign = Literal["p", "n", "u"]  # positive, negative, unsigned

LEVELS = 8
SURFACE: dict[Scheme, str] = {"light": "#ffffff", "dark": "#1b1b1b"}
INK: dict[Scheme, str] = {"light": "#111111", "dark": "#f5f5f5"}
QUIET: dict[Scheme, str] = {"light": "#595959", "dark": "#b4b4b4"}
STRONGEST: dict[Sign, dict[Scheme, str]] = {
    "p": {"light": "#4a9ae0", "dark": "#1565b0"},
    "n": {"light": "#f59b1d", "dark": "#a85400"},
    "u": {"light": "#b58be8", "dark": "#7a3fb8"},
}
LEGEND: dict[Sign, str] = {"p": "for the target", "n": "against it", "u": "matters, without direction"}


def colour(sign: Sign, level: int, scheme: Scheme) -> str:
    """Background of a word: `level` / `LEVELS` of the way from the surface to the strongest colour."""
    low, high = SURFACE[scheme], STRONGEST[sign][scheme]
    channels = ((int(low[i : i + 2], 16), int(high[i : i + 2], 16)) for i in (1, 3, 5))
    return "#" + "".join(f"{round(a + (b - a) * level / LEVELS):02x}" for a, b in channels)


def _rules(scheme: Scheme) -> str:
    shades = (
        f".heedful .hf-{sign}{level}{{background:{colour(sign, level, scheme)};color:{INK[scheme]}}}"
        for sign in STRONGEST
        for level in range(1, LEVELS + 1)
    )
    root = f".heedful{{background:{SURFACE[scheme]};color:{INK[scheme]}}}"
    return root + f".heedful .hf-quiet{{color:{QUIET[scheme]}}}" + "".join(shades)


STYLE = (
    ".heedful{font:15px/1.6 system-ui,sans-serif;padding:.5em .8em;text-align:start;"
    "forced-color-adjust:none;print-color-adjust:exact}"
    ".heedful .hf-text{white-space:pre-wrap;overflow-wrap:anywhere;unicode-bidi:isolate;margin:.1em 0 .3em}"
    ".heedful .hf-quiet{font-size:.85em}.heedful .hf-example{margin:.4em 0 1.2em}"
    ".heedful .hf-text span{border-radius:.2em}"
    ".heedful [class^=hf-n]{text-decoration:underline dotted}"
    + _rules("light")
    + f"@media screen and (prefers-color-scheme:dark){{{_rules('dark')}}}"
)


def fragment(body: str) -> str:
    """`body` with its colours: self-contained, without script, light or dark as the reader's screen is."""
    return f'<div class="heedful"><style>{STYLE}</style>{body}</div>'


def page(body: str) -> str:
    """A fragment as an HTML page of its own."""
    head = '<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    return f"{head}<title>heedful</title>{body}"
