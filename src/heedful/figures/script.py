"""The scripts that draw figures in a browser: Vega from the package that carries it, and ours around it."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from importlib.resources import files
from threading import Lock, Thread

_BUNDLING = Lock()  # of many who ask at once, one does it


@cache
def vega() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, from the package that carries them, with the licences of all that
    is in it, which the package leaves out.

    Made fit for a <script> element; its names stay inside, except `vegaEmbed`.
    """
    import vl_convert

    bundle = vl_convert.javascript_bundle("window.vegaEmbed=vegaEmbed;").replace("\r\n", "\n")
    safe = bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")
    return f"/*!\n{licences()}*/\n(()=>{{{safe}}})();"


def licences() -> str:
    """Of what draws the figures: whoever passes a page on passes them on, too."""
    return files("heedful.figures").joinpath("LICENSES.txt").read_text(encoding="utf-8")


def drawing() -> str:
    """`drawFigure` and `saveFigure`."""
    return files("heedful.figures").joinpath("draw.js").read_text(encoding="utf-8")


def module() -> str:
    """Both as one module, for a page that loads it when it has figures."""
    with _BUNDLING:
        return f"{_vega_of_another_process()}\n{drawing()}\nexport {{ drawFigure, saveFigure }};\n"


@cache
def _vega_of_another_process() -> str:
    """Bundling takes seconds in which no other thread of its process gets a turn: a server would stand still."""
    code = "import sys; from heedful.figures.script import vega; sys.stdout.buffer.write(vega().encode())"
    return subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True).stdout.decode()


def expect() -> None:
    """Someone is about to ask for the module: bundle Vega meanwhile, which takes seconds."""
    if not _vega_of_another_process.cache_info().currsize and not _BUNDLING.locked():
        Thread(target=module, daemon=True).start()


STYLE = (  # of what Vega shows beside a pointer, and of the place of a figure
    ".plot{width:100%;min-height:8rem}.plot svg{display:block;max-width:100%;height:auto}"
    "#vg-tooltip-element{visibility:hidden;position:fixed;z-index:10;background:var(--surface);color:var(--ink);"
    "border:1px solid var(--quiet);border-radius:.4rem;padding:.35rem .6rem;font-size:.82rem;line-height:1.4;"
    "pointer-events:none;max-width:20rem;box-shadow:0 2px 8px #0004}"
    "#vg-tooltip-element.visible{visibility:visible}#vg-tooltip-element td{border:0;padding:0 .6rem 0 0}"
    "#vg-tooltip-element table{min-width:0}#vg-tooltip-element td.key{color:var(--quiet)}"
)
