"""The report over HTTP, from a folder or a bucket: each page made when somebody asks for it.

In: Facts, an address to listen at. Out: an ASGI app. It only reads: names of pages are looked up, never files, and of
the tables only the parts that hold what is asked for are read. Facts are those of when it began.
"""

from __future__ import annotations

import functools
import re
import socket
import threading
from collections.abc import Callable

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from .errors import OebError, RequestError
from .jsontext import visible
from .report.batch import Counts, batches, drawn_of, made_values, reason
from .report.facts import Document, Facts
from .report.pictures import MOST_PAGES, picture
from .report.site import POLICY, Site

TYPES = {
    "html": "text/html; charset=utf-8", "js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8",
    "csv": "text/csv; charset=utf-8", "webp": "image/webp",
}  # fmt: skip
HEADERS = {
    "Content-Security-Policy": f"{POLICY}; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
KEPT = 8  # documents whose values or images are kept for the next request
_VALUES = re.compile(r"data/values/(\d{1,9})-(\d{1,4})\.js", re.ASCII)
_IMAGE = re.compile(r"pages/(\d{1,9})/(\d{1,4})\.webp", re.ASCII)
_WHOLE = ("data/fields.js", "data/compare.js", "csv/fields.csv")  # what is counted over all verdicts


class Pages:
    """Pages by name, as `Site.render` gives them, with what they need read just before."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._site = Site(facts, Counts())
        self._whole: Site | None = None
        self._lock = threading.Lock()
        self._values = functools.lru_cache(KEPT)(self._values_of)

    def get(self, name: str) -> bytes | None:
        """A page, script or image by its name; None if there is none of it."""
        if match := _VALUES.fullmatch(name):
            document = self._site.document(match[1])
            return None if document is None else self._values(document.number)[0].get(name)
        if match := _IMAGE.fullmatch(name):
            document = self._site.document(match[1])
            return None if document is None else self._image(document, int(match[2]))
        if name in _WHOLE:
            return self._all().render(name)
        if name.startswith("documents/"):
            document = self._site.document(name.removeprefix("documents/").removesuffix(".html"))
            if document is not None:
                self._look_at(document)
        return self._site.render(name)

    def _values_of(self, number: int) -> tuple[dict[str, bytes], Counts]:
        counts = Counts()
        files = dict(made_values(self.facts.runs, [self.facts.documents[number]], counts))
        return files, counts

    def _look_at(self, document: Document) -> None:
        """Counts what the page of a document tells of its pages and verdicts."""
        if document.number in self._site.counts.pictured:
            return
        drawn = drawn_of(document, lambda data, name: picture(data, name, range(0)))
        images = len(drawn.images) or (min(drawn.pages or 0, MOST_PAGES) if drawn.text is None else 0)
        of_values = self._values(document.number)[1]
        with self._lock:
            self._site.counts.patterns.update(of_values.patterns)
            self._site.counts.pictured[document.number] = (images, drawn.text, reason(drawn, images))
            if drawn.pages is not None:
                self._site.counts.pages[document.doc_id] = drawn.pages

    def _image(self, document: Document, page: int) -> bytes | None:
        drawn = drawn_of(document, lambda data, name: picture(data, name, range(page - 1, page)))
        return drawn.images[0] if drawn.images and page >= 1 else None

    def _all(self) -> Site:
        """A Site with the counts of all verdicts, which are read once."""
        with self._lock:
            if self._whole is None:
                counts = Counts()
                for batch in batches(self.facts, ""):
                    for _ in made_values(batch.runs, batch.documents, counts):
                        pass
                self._whole = Site(self.facts, counts)
            return self._whole


def app(pages: Pages, hosts: list[str]) -> Starlette:
    """The app; ``hosts``: names under which it may be asked, so that no other site's name leads to it."""

    def answer(request: Request) -> Response:
        name = request.path_params["name"]
        if not name:
            return RedirectResponse("/index.html", headers=HEADERS)
        try:
            data = pages.get(name)
        except OebError as error:
            return PlainTextResponse(visible(str(error)), 503, headers=HEADERS)
        if data is None:
            return PlainTextResponse("there is no such page", 404, headers=HEADERS)
        kind = TYPES.get(name.rpartition(".")[2], "text/plain; charset=utf-8")
        return Response(data, media_type=kind, headers=HEADERS)

    return Starlette(
        routes=[Route("/{name:path}", answer, methods=["GET"])],
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=hosts)],
    )


def serve(facts: Facts, host: str, port: int, listening: Callable[[str], None]) -> None:
    """Serves until the process is asked to end; ``listening`` is told the address.

    Raises:
        RequestError: nothing can listen there.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    end = socket.socket(family)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        end.bind((host, port))
    except OSError as error:
        end.close()
        raise RequestError(f"cannot listen at {host}:{port}: {error.strerror or error}") from error
    shown = f"[{host}]" if ":" in host else host
    made = app(Pages(facts), ["localhost", "127.0.0.1", "[::1]", shown])
    config = uvicorn.Config(made, log_level="warning", server_header=False, proxy_headers=False, lifespan="off")
    listening(f"http://{shown}:{end.getsockname()[1]}/")
    uvicorn.Server(config).run(sockets=[end])
