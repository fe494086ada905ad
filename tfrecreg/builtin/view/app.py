"""Answers requests to the addresses of the viewer, with JSON or bytes."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import anyio
import anyio.abc
import anyio.to_thread
import numpy as np
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from tfrecreg.builtin.view.background import ASKER, Asker
from tfrecreg.builtin.view.browsed import Browsed, Opened
from tfrecreg.builtin.view.compare import Comparisons
from tfrecreg.builtin.view.record import SIZES, medium, part_of, thumbnail, whole, whole_record
from tfrecreg.builtin.view.selections import (
    ChosenRecords,
    ViewChoice,
    command_line,
    derived,
    derives,
    keys,
    python_line,
)
from tfrecreg.core.values.errors import (
    NoSuchNameError,
    NoSuchRecordError,
    StorageError,
    TfrecregError,
    UsageError,
)
from tfrecreg.core.values.text import json_data, safe

_THREADS = 6
_QUESTIONS = 24
"""Maximum number of simultaneous requests for queries of catalogs. Each may take a minute."""
_TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_IMMUTABLE = "private, max-age=31536000, immutable"


Handler = Callable[[Request], Response | dict[str, Any]]


class Viewer:
    """Handles the requests to all addresses."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._comparisons = Comparisons(opened.registry)

    def close(self) -> None:
        self._opened.close()

    def app(self) -> Starlette:
        limit, questions = map(anyio.CapacityLimiter, (_THREADS, _QUESTIONS))
        of_target = "/api/t/{target}"
        of_record = "{shard}/{record}"
        handlers: dict[str, Handler] = {
            "/": lambda _: _static("index.html"),
            "/static/{path:path}": lambda asked: _static(asked.path_params["path"]),
            "/api/targets": lambda _: self._opened.to_json(),
            "/api/open": lambda asked: self._opened.open(_text(asked, "name")).entry(),
            of_target: lambda asked: self._of(asked).summary(),
            f"{of_target}/records": self._records,
            f"{of_target}/thumb/{of_record}": self._thumb,
            f"{of_target}/image/{of_record}": self._image,
            f"{of_target}/media/{of_record}": self._media,
            f"{of_target}/record/{of_record}": lambda asked: whole_record(*self._place(asked)),
            f"{of_target}/select": self._select,
            f"{of_target}/facets": self._facets,
            f"{of_target}/findings": self._findings,
            f"{of_target}/save": self._save,
            "/api/compare": lambda asked: self._comparisons.summary(*self._both(asked)),
            "/api/compare/records": self._compared,
        }
        asks = (self._select, self._facets)
        routes = [
            Route(
                path,
                _endpoint(handler, questions if handler in asks else limit),
                methods=["GET"],
            )
            for path, handler in handlers.items()
        ]
        return Starlette(routes=routes, exception_handlers={HTTPException: _unknown})

    def _of(self, asked: Request) -> Browsed:
        return self._opened[_number(asked, "target")]

    def _records(self, asked: Request) -> dict[str, Any]:
        found = self._of(asked).records(_text(asked, "selection"), *_page(asked))
        self._opened.shown.set()
        return found

    def _thumb(self, asked: Request) -> Response:
        browsed, number = self._place(asked)
        size = min(max(_number(asked, "size", 160), SIZES[0]), SIZES[1])
        seen, _ = browsed.shards.place(number)
        version = _text(asked, "v")
        if version and version != seen.identity:
            raise StorageError("the shard has changed since this address was made")
        try:
            picture = thumbnail(browsed.image(number), size)
        except ValueError as error:
            why = safe(str(error), limit=300)
            raise UsageError(f"the image does not decode: {why}") from None
        # The address contains the state of the shard, so the browser may cache it.
        picture.headers["cache-control"] = _IMMUTABLE if version else "no-store"
        return picture

    def _image(self, asked: Request) -> Response:
        browsed, number = self._place(asked)
        return whole(browsed.image(number, _text(asked, "feature") or None))

    def _media(self, asked: Request) -> Response:
        browsed, number = self._place(asked)
        found = medium(browsed.example(number), _text(asked, "feature") or None)
        return part_of(*found, asked.headers.get("range", ""))

    def _place(self, asked: Request) -> tuple[Browsed, int]:
        browsed = self._of(asked)
        number = browsed.shards.number(_number(asked, "shard"), _number(asked, "record"))
        return browsed, number

    def _both(self, asked: Request) -> tuple[Browsed, Browsed]:
        return self._opened[_number(asked, "a")], self._opened[_number(asked, "b")]

    def _compared(self, asked: Request) -> dict[str, Any]:
        kind = _text(asked, "kind") or "changed"
        return self._comparisons.records(*self._both(asked), kind, *_page(asked))

    def _select(self, asked: Request) -> dict[str, Any]:
        browsed = self._of(asked)
        choice = ViewChoice(
            split=_text(asked, "split"),
            where=tuple(each for each in _texts(asked, "where") if each.strip()),
            sort=_text(asked, "sort"),
            descending=_text(asked, "desc") == "1",
            findings=_texts(asked, "findings"),
            changed_since=_text(asked, "changed_since"),
        )
        found = self._chosen(browsed, choice)
        return {
            "selection": choice.name,
            "count": len(found),
            "of": len(browsed.shards),
            "note": browsed.report.note(choice.findings),
            "cli": command_line(browsed.word, choice),
            "python": python_line(browsed.word, browsed.shards.splits, choice),
            "toml": derives(browsed, choice),
        }

    def _chosen(self, browsed: Browsed, choice: ViewChoice) -> ChosenRecords:
        among = []
        if choice.findings:
            among.append(np.array(browsed.report.records(choice.findings), np.int64))
        if choice.changed_since:
            among.append(self._comparisons.changed_since(choice.changed_since, browsed))
        return browsed.selections.select(choice, among)

    def _facets(self, asked: Request) -> dict[str, Any]:
        browsed = self._of(asked)
        selection = browsed.selections.get(_text(asked, "selection"))
        without = {
            column: self._chosen(browsed, less)
            if less.findings or less.changed_since
            # A query counts the records, so their numbers are not needed.
            else ChosenRecords(less, range(0))
            for column, less in _less(selection.choice, _texts(asked, "own"))
        }
        facets = browsed.facets.of(
            selection,
            browsed.report.codes,
            without,
            column=_text(asked, "column"),
            find=_text(asked, "find"),
        )
        return {"facets": facets}

    def _findings(self, asked: Request) -> dict[str, Any]:
        browsed = self._of(asked)
        return browsed.report.to_json(len(browsed.shards))

    def _save(self, asked: Request) -> Response:
        browsed = self._of(asked)
        selection = browsed.selections.get(_text(asked, "selection"))
        form = _text(asked, "as")
        if form == "keys":
            parts, headers = keys(browsed, selection), _attachment("keys.csv")
            return StreamingResponse(parts, 200, headers, "text/csv; charset=utf-8")
        if form != "toml":
            raise UsageError(f"a selection cannot be saved as `{form}`")
        body = derived(browsed, selection.choice).encode("utf-8", "backslashreplace")
        return Response(body, 200, _attachment("dataset.toml"), "text/plain; charset=utf-8")


def _text(asked: Request, name: str) -> str:
    return asked.query_params.get(name, "")


def _texts(asked: Request, name: str) -> tuple[str, ...]:
    return tuple(filter(None, asked.query_params.getlist(name)))


def _number(asked: Request, name: str, default: int | None = None) -> int:
    """The number in the path or, if there is none, in the query."""
    text = str(asked.path_params.get(name, asked.query_params.get(name, default)))
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise UsageError(f"`{name}` should be a number, found `{text}`")
    return int(text)


def _page(asked: Request) -> tuple[int, int]:
    """The number of the first record that the answer shows, and how many it shows."""
    return _number(asked, "from", 0), _number(asked, "count", 60)


def _less(choice: ViewChoice, own: Iterable[str]) -> Iterator[tuple[str, ViewChoice]]:
    """For each column whose facet added a condition, yield the column and the choice without this
    condition."""
    if choice.split:
        yield "split", replace(choice, split="")
    for each in own:
        column, _, condition = each.partition("~")
        if condition in choice.where:
            rest = list(choice.where)
            rest.remove(condition)  # the user's own condition may equal it and stays
            yield unquote(column), replace(choice, where=tuple(rest))


def _attachment(name: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{name}"'}


@cache
def _static_files() -> Mapping[str, bytes]:
    """The static files of the web page, by path. Only these paths are served."""
    root = Path(__file__).with_name("static")
    found = (each for each in root.rglob("*.*") if each.suffix[1:] in _TYPES)
    return {each.relative_to(root).as_posix(): each.read_bytes() for each in found}


def _static(path: str) -> Response:
    body = _static_files().get(path)
    if body is None:
        raise NoSuchNameError(f"there is no file `{path}`")
    return Response(body, 200, {"cache-control": "no-cache"}, _TYPES[path.rpartition(".")[2]])


def _endpoint(handler: Handler, limit: anyio.CapacityLimiter) -> Callable[[Request], Any]:
    async def endpoint(request: Request) -> Response:
        asker = Asker()
        answer = Response(status_code=499)  # the client has disconnected

        async def follow(group: anyio.abc.TaskGroup) -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass
            asker.is_gone = True
            group.cancel_scope.cancel()

        try:
            async with anyio.create_task_group() as group:
                group.start_soon(follow, group)
                answer = await anyio.to_thread.run_sync(
                    _answered, handler, request, asker, limiter=limit
                )
                group.cancel_scope.cancel()
        finally:
            asker.is_gone = True
        return answer

    return endpoint


def _answered(handler: Handler, asked: Request, asker: Asker) -> Response:
    """The response to one request; an error becomes a JSON error response."""
    ASKER.set(asker)  # set in a copy of the context
    try:
        found = handler(asked)
    except TfrecregError as error:
        status = 409 if isinstance(error, StorageError) else 400
        if isinstance(error, NoSuchRecordError | NoSuchNameError):
            status = 404
        return _error(status, error.message, error.hint)
    except Exception as error:
        # The viewer continues after an error in its own code or in a plugin.
        traceback.print_exc(file=sys.stderr)
        return _error(500, f"{type(error).__name__}: {safe(str(error), limit=300)}", "")
    if not isinstance(found, Response):
        return _json(200, found)
    found.headers.setdefault("cache-control", "no-store")
    return found


def _json(status: int, document: object) -> Response:
    # In ASCII: names that are not UTF-8 contain surrogate escapes.
    body = json.dumps(json_data(document), allow_nan=False).encode("ascii")
    return Response(body, status, {"cache-control": "no-store"}, "application/json")


def _error(status: int, message: str, hint: str) -> Response:
    return _json(status, {"error": {"message": message, "hint": hint}})


async def _unknown(request: Request, error: Exception) -> Response:
    del request
    status = error.status_code if isinstance(error, HTTPException) else 500
    return _error(status, "there is nothing at this address", "")
