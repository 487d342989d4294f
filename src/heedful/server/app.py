"""The application: addresses, errors, and the guard around all of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

from heedful.errors import Mistake
from heedful.explanation.drawing import STYLE
from heedful.figures import script
from heedful.figures.theme import stylesheet
from heedful.report.shell import text_of
from heedful.server.answer import mistake
from heedful.server.guard import LOCAL, Guard, TooLarge, read_json
from heedful.server.pages import experiment as experiment_page
from heedful.server.pages import heads as heads_page
from heedful.server.pages import instance as instance_page
from heedful.server.pages import overview, playground
from heedful.server.pages import run as run_page
from heedful.server.pages import words as words_page
from heedful.server.question import Busy, Left, TooLong
from heedful.server.site import Site
from heedful.server.stored.library import Library, Missing
from heedful.server.stored.texts import StoredTexts

STATUS = {Missing: 404, TooLarge: 413, Busy: 503, TooLong: 504}


def create_app(
    library: Library, data_dirs: Sequence[Path] = (), hosts: Sequence[str] = (), any_address: bool = False
) -> Guard:
    """Everything that `heedful serve` answers.

    It answers under the names of this machine, under `hosts`, and with `any_address` under every IP address.
    """
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    site = Site(library, StoredTexts(data_dirs))
    _pages(app, site)
    _errors(app)
    app.mount("/static", StaticFiles(directory=Path(__file__).parent / "static"), name="static")
    return Guard(app, (*LOCAL, *hosts), any_address, site.models.close)


def _pages(app: FastAPI, site: Site) -> None:
    pages = overview.Pages()

    @app.get("/")
    def see_overview(request: Request) -> Response:
        return overview.overview(site, request, pages)

    @app.get("/compare")
    def see_comparison(request: Request) -> Response:
        return run_page.compare_page(site, request)

    @app.get("/colours.css")
    def see_colours() -> Response:
        return Response(
            stylesheet() + STYLE + script.STYLE + text_of("parts.css"),
            media_type="text/css",
            headers={"Cache-Control": "max-age=3600"},
        )

    @app.get("/attention.js")
    def see_attention_script() -> Response:
        return Response(
            text_of("attention.js") + text_of("tip.js"),
            media_type="text/javascript",
            headers={"Cache-Control": "max-age=3600"},
        )

    @app.get("/figures.js")
    def see_figures_script() -> Response:
        return Response(script.module(), media_type="text/javascript", headers={"Cache-Control": "max-age=3600"})

    @app.get("/runs/{run}")
    def see_run(request: Request, run: str) -> Response:
        script.expect()
        return run_page.run_page(site, request, run)

    @app.get("/runs/{run}/words")
    async def see_words(request: Request, run: str) -> Response:
        return await site.models.long.ask(request, lambda: words_page.words_page(site, request, run))

    @app.get("/runs/{run}/playground")
    async def see_playground(request: Request, run: str) -> Response:
        return await playground.see(site, request, run)

    @app.post("/runs/{run}/playground")
    async def ask_playground(request: Request, run: str) -> Response:
        asked = await read_json(request)
        return await site.models.long.ask(request, lambda: playground.ask(site, request, run, asked))

    @app.post("/runs/{run}/decode")
    async def ask_decode(request: Request, run: str) -> Response:
        asked = await read_json(request)
        return await site.models.quick.ask(request, lambda: playground.decode(site, run, asked))

    @app.post("/runs/{run}/adversary")
    async def ask_adversary(request: Request, run: str) -> Response:
        asked = await read_json(request)
        return await site.models.long.ask(request, lambda: playground.adversary(site, run, asked))

    @app.get("/runs/{run}/attention")
    async def see_heads(request: Request, run: str) -> Response:
        return await heads_page.ask_heads(site, request, run, heads_page.asked_by(request))

    @app.post("/runs/{run}/attention")
    async def ask_heads(request: Request, run: str) -> Response:
        return await heads_page.ask_heads(site, request, run, await read_json(request))

    @app.get("/runs/{run}/examples/{place}")
    async def see_instance(request: Request, run: str, place: str) -> Response:
        if not (place.isascii() and place.isdecimal() and len(place) < 10):
            raise Missing(f"{place[:40]!r} is not the place of a text: a whole number is.")
        return await instance_page.instance_page(site, request, run, int(place))

    @app.get("/runs/{run}/{experiment}")
    def see_experiment(request: Request, run: str, experiment: str) -> Response:
        script.expect()
        return experiment_page.experiment_page(site, request, run, experiment)


def _errors(app: FastAPI) -> None:
    @app.exception_handler(Mistake)
    async def on_mistake(request: Request, error: Mistake) -> Response:
        return mistake(request, str(error), STATUS.get(type(error), 422))

    @app.exception_handler(Left)
    async def on_left(request: Request, error: Left) -> Response:
        return Response(status_code=499)  # nobody reads it

    @app.exception_handler(HTTPException)
    async def on_address(request: Request, error: HTTPException) -> Response:
        sentence = {404: "there is nothing at this address.", 405: "this address does not take that method."}
        return mistake(request, sentence.get(error.status_code, str(error.detail)), error.status_code)

    @app.exception_handler(Exception)
    async def on_failure(request: Request, error: Any) -> Response:
        sentence = f"heedful failed at this ({type(error).__name__}): what happened stands in its terminal."
        return mistake(request, sentence, 500)
