"""Trials to search: DuckDB over the Parquet files that hold their rows.

What people filter and sort by is kept in memory, some 200 bytes a trial. Answers stay in the files: they are read for
the trials of one page, and all of them when a text is searched for, once for each text.

Whoever searches gives values, never SQL: all that comes from outside is a bound parameter.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from trunchray.core.trial_search import PAGE, TrialSearch
from trunchray.errors import StoreError, UsageError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

EXCERPT = 240
"""Characters of an answer or a message in a list."""
REMEMBERED = 8
"""Texts whose trials are known, so that further pages and filters take no search."""
ANSWERS = 2000
"""Trials of one case that are listed at most."""

_TABLES = """
CREATE TABLE files (file INTEGER, run INTEGER, bundle VARCHAR, place INTEGER, path VARCHAR);
CREATE TABLE cases (case_id VARCHAR, number INTEGER);
CREATE TABLE found (search INTEGER, row_key BIGINT);
CREATE TABLE trials (
    run INTEGER, file INTEGER, line BIGINT, case_number INTEGER, case_id VARCHAR, eval VARCHAR, model VARCHAR,
    attempt INTEGER, outcome VARCHAR, score DOUBLE, failure VARCHAR, tokens BIGINT, cost DOUBLE, seconds DOUBLE
);
CREATE MACRO row_key(file, line) AS (file::BIGINT << 40) | line;
"""
"""`row_key` tells rows apart by one number, which is looked up faster than two; no file has 2⁴⁰ lines."""

_ADD_CASES = """
INSERT INTO cases
SELECT case_id, (SELECT coalesce(max(number), 0) FROM cases) + number
FROM (SELECT unnest($ids) AS case_id, generate_subscripts($ids, 1) AS number)
WHERE case_id NOT IN (SELECT case_id FROM cases)
"""

_ADD_FILES = """
INSERT INTO files
SELECT unnest($files), $run, unnest($bundles), unnest($places), unnest($paths)
"""

_ADD_TRIALS = """
INSERT INTO trials
SELECT files.run, files.file, rows.file_row_number, cases.number, rows.case_id, rows.eval_id, rows.agent, rows.attempt,
    rows.outcome, rows.score, rows.failure.boundary || '/' || rows.failure.type,
    coalesce(rows.usage.input, 0) + coalesce(rows.usage.output, 0), rows.cost_usd,
    rows.latency.model + rows.latency.tools
FROM read_parquet($paths, filename = true, file_row_number = true, hive_partitioning = false) AS rows
JOIN files ON files.path = rows.filename AND files.run = $run
JOIN cases ON cases.case_id = rows.case_id
"""

_LAST_OF_EACH = """
QUALIFY row_number() OVER (
    PARTITION BY files.bundle, rows.case_id ORDER BY files.place DESC, rows.file_row_number DESC
) = 1
"""

_FIND_TEXT = """
INSERT INTO found
SELECT $search, row_key(files.file, rows.file_row_number)
FROM read_parquet($paths, filename = true, file_row_number = true, hive_partitioning = false) AS rows
JOIN files ON files.path = rows.filename
WHERE regexp_matches(rows.output, $pattern, 'i')
    OR regexp_matches(coalesce(if($messages, rows.message, NULL), rows.failure.message), $pattern, 'i')
"""
"""A pattern that ignores case takes less time than writing all answers in small letters, and knows more of them."""

_WANTED = """
WHERE run = coalesce($run, run)
    AND model = coalesce($model, model)
    AND eval = coalesce($eval, eval)
    AND outcome = coalesce($outcome, outcome)
    AND attempt = coalesce($attempt, attempt)
    AND (
        $search IS NULL
        OR case_number IN (SELECT number FROM cases WHERE regexp_matches(case_id, $pattern, 'i'))
        OR row_key(file, line) IN (SELECT row_key FROM found WHERE search = $search)
    )
"""

_COUNT = f"SELECT count(*) FROM trials {_WANTED}"  # noqa: S608 - no value is in the text, here and below

_HEADS = """
SELECT run, case_id, eval, model, attempt, outcome, score, failure, tokens, cost, seconds, file, line
FROM trials
"""

_EXCERPTS = """
SELECT files.file, rows.file_row_number,
    left(coalesce(rows.message, rows.failure.message), $most), left(rows.output, $most)
FROM read_parquet($paths, filename = true, file_row_number = true, hive_partitioning = false) AS rows
JOIN files ON files.path = rows.filename
WHERE rows.file_row_number IN (SELECT unnest($lines))
"""

_NEIGHBOURS = """
WITH trial_places AS (SELECT case_id, row_number() OVER (ORDER BY {order}) AS place FROM trials {wanted}),
case_places AS (SELECT case_id, min(place) AS place FROM trial_places GROUP BY case_id),
beside AS (
    SELECT case_id, row_number() OVER along AS place, lag(case_id) OVER along, lead(case_id) OVER along
    FROM case_places
    WINDOW along AS (ORDER BY place)
)
SELECT * EXCLUDE (case_id), (SELECT count(*) FROM case_places) FROM beside WHERE case_id = $case
"""


class TrialHead(NamedTuple):
    """What a list says of a trial, and where its row is: line `line`, from 0, of the file `file`."""

    run: int
    case_id: str
    eval: str
    model: str
    attempt: int
    outcome: str
    score: float | None
    failure: str | None
    """Boundary and type, where there is no verdict."""
    tokens: int
    cost: float | None
    seconds: float
    """Asking the model and running tools; without grading, as in reports."""
    file: int
    line: int


class Excerpt(NamedTuple):
    """The beginnings of a trial's message and answer; None where it has none."""

    message: str | None
    output: str | None


class Beside(NamedTuple):
    """The place of a case among those of a search, from 1, the ones before and after it, and how many there are."""

    place: int
    before: str | None
    after: str | None
    of: int


class TrialIndex:
    """The trials of some runs, which are numbered. Safe to use from several threads.

    All methods raise a `StoreError` when DuckDB cannot do what it should, above all read a file.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        """`folders`: where all the files are; no others are ever opened.

        Raises:
            UsageError: DuckDB is not installed.
        """
        self._database = _open(folders)
        self._database.execute(_TABLES)
        self._told: set[int] = set()  # the runs whose verdicts are searched for words, too
        self._texts: dict[str, int] = {}  # the number under which `found` holds what has them; the last one used last
        self._searches = self._files = 0
        self._writing = Lock()

    def close(self) -> None:
        self._database.close()

    def search_messages(self, run: int) -> None:
        """Look for words also in what evaluators said of the answers of a run; else only in the reasons of errors."""
        self._told.add(run)

    def add_cases(self, case_ids: Sequence[str]) -> None:
        """Cases that trials are about, in the order in which they are listed; known ones keep their place."""
        with self._writing, self._cursor() as cursor:
            cursor.execute(_ADD_CASES, {"ids": list(case_ids)})

    def replace(self, run: int, results: Path) -> None:
        """The rows of one file, each of another trial, in place of all that is known of a run."""
        self._put(run, {"": [results]}, anew=True, repeats=False)

    def update(self, run: int, bundles: Mapping[str, Sequence[Path]], *, anew: bool) -> None:
        """Bundles of files in place of those with the same names or, `anew`, of all that is known of a run.

        The rows of a bundle are of one model and one attempt; of those about the same case, the last one counts.
        """
        self._put(run, bundles, anew=anew, repeats=True)

    def _put(self, run: int, bundles: Mapping[str, Sequence[Path]], *, anew: bool, repeats: bool) -> None:
        with self._writing, self._cursor() as cursor:
            cursor.execute("BEGIN")
            self._forget(cursor, run, None if anew else list(bundles))
            if paths := self._add_files(cursor, run, bundles):
                add = _ADD_TRIALS + _LAST_OF_EACH if repeats else _ADD_TRIALS
                cursor.execute(add, {"paths": paths, "run": run})
            cursor.execute("COMMIT")
            self._texts.clear()

    def _forget(self, cursor: DuckDBPyConnection, run: int, bundles: list[str] | None) -> None:
        old = "run = $run AND ($bundles::VARCHAR[] IS NULL OR bundle IN (SELECT unnest($bundles::VARCHAR[])))"
        values = {"run": run, "bundles": bundles}
        cursor.execute(f"DELETE FROM trials WHERE file IN (SELECT file FROM files WHERE {old})", values)  # noqa: S608
        cursor.execute(f"DELETE FROM files WHERE {old}", values)  # noqa: S608 - no value is in the text
        cursor.execute("DELETE FROM found")

    def _add_files(self, cursor: DuckDBPyConnection, run: int, bundles: Mapping[str, Sequence[Path]]) -> list[str]:
        listed = [(name, place, str(path)) for name, paths in bundles.items() for place, path in enumerate(paths)]
        if not listed:
            return []
        names, places, paths = map(list, zip(*listed, strict=True))
        numbers = list(range(self._files, self._files + len(listed)))
        self._files += len(listed)
        values = {"files": numbers, "run": run, "bundles": names, "places": places, "paths": paths}
        cursor.execute(_ADD_FILES, values)
        return paths

    def find(self, search: TrialSearch, run: int | None) -> tuple[int, list[TrialHead]]:
        """How many trials there are, and those of the wanted page; `run` is the number of the run that was named."""
        with self._cursor() as cursor:
            values = self._values(cursor, search, run)
            ((total,),) = cursor.execute(_COUNT, values).fetchall()
            page = f"{_HEADS} {_WANTED} ORDER BY {_order(search)} LIMIT $most OFFSET $offset"
            cursor.execute(page, values | {"most": PAGE, "offset": search.offset})
            return total, [TrialHead(*row) for row in cursor.fetchall()]

    def excerpts(self, heads: Sequence[TrialHead]) -> list[Excerpt]:
        """The beginnings of what the rows of these trials say."""
        with self._cursor() as cursor:
            paths = _paths(cursor, {head.file for head in heads})
            if not paths:
                return [Excerpt(None, None)] * len(heads)
            lines = sorted({head.line for head in heads})
            cursor.execute(_EXCERPTS, {"paths": paths, "lines": lines, "most": EXCERPT})
            found = {(file, line): Excerpt(*texts) for file, line, *texts in cursor.fetchall()}
            return [found.get((head.file, head.line), Excerpt(None, None)) for head in heads]

    def beside(self, case_id: str, search: TrialSearch, run: int | None) -> Beside | None:
        """Where a case is in the cases of a search, in the order of their first trials; None when it is not there."""
        with self._cursor() as cursor:
            query = _NEIGHBOURS.format(order=_order(search), wanted=_WANTED)
            found = cursor.execute(query, self._values(cursor, search, run) | {"case": case_id}).fetchone()
            return Beside(*found) if found else None

    def answers(self, case_id: str) -> list[TrialHead]:
        """The trials of one case, by run, model and attempt."""
        with self._cursor() as cursor:
            query = f"{_HEADS} WHERE case_id = $case ORDER BY run, model, attempt LIMIT $most"
            cursor.execute(query, {"case": case_id, "most": ANSWERS})
            return [TrialHead(*row) for row in cursor.fetchall()]

    def trial(self, run: int, case_id: str, model: str, attempt: int) -> TrialHead | None:
        """One trial, if it has a row."""
        with self._cursor() as cursor:
            query = f"{_HEADS} WHERE run = $run AND case_id = $case AND model = $model AND attempt = $attempt"
            values = {"run": run, "case": case_id, "model": model, "attempt": attempt}
            found = cursor.execute(query, values).fetchone()
            return TrialHead(*found) if found else None

    def path(self, file: int) -> Path | None:
        """The file of this number; None when it has been replaced."""
        with self._cursor() as cursor:
            found = _paths(cursor, {file})
            return Path(found[0]) if found else None

    def _values(self, cursor: DuckDBPyConnection, search: TrialSearch, run: int | None) -> dict[str, Any]:
        """The parameters of `_WANTED`."""
        number = self._search(cursor, search.text) if search.text else None
        asked = search.model_dump(include={"model", "eval", "outcome", "attempt"})
        return asked | {"run": run, "search": number, "pattern": re.escape(search.text)}

    def _search(self, cursor: DuckDBPyConnection, text: str) -> int:
        """The number under which `found` holds the trials whose answer or message has the text."""
        with self._writing:
            number = self._texts.pop(text, None)
            if number is None:
                number = self._searches = self._searches + 1
                files = cursor.execute("SELECT run, path FROM files").fetchall()
                for told in (False, True):  # apart: an unwanted column is not read
                    if wanted := [path for run, path in files if (run in self._told) == told]:
                        values = {"search": number, "paths": wanted, "messages": told, "pattern": re.escape(text)}
                        cursor.execute(_FIND_TEXT, values)
            self._texts[text] = number
            if len(self._texts) > REMEMBERED:
                oldest = self._texts.pop(next(iter(self._texts)))
                cursor.execute("DELETE FROM found WHERE search = $oldest", {"oldest": oldest})
            return number

    @contextmanager
    def _cursor(self) -> Generator[DuckDBPyConnection]:
        import duckdb  # noqa: PLC0415 - it is there, or there would be no index

        try:
            with self._database.cursor() as cursor:
                yield cursor
        except duckdb.Error as e:
            raise StoreError(f"the rows cannot be searched: {e}") from e


def _open(folders: Sequence[Path]) -> DuckDBPyConnection:
    """A database in memory that reads what is below the folders, and asks the network for nothing."""
    try:
        import duckdb  # noqa: PLC0415 - only who looks at runs needs it
    except ImportError as e:
        raise UsageError(f"looking at runs needs the package duckdb ({e}): pip install 'trunchray[view]'") from e
    off = {"autoinstall_known_extensions": False, "autoload_known_extensions": False, "temp_directory": ""}
    database = duckdb.connect(config={**off})
    allowed = ", ".join(_quoted(str(folder)) for folder in folders)
    database.execute(f"SET allowed_directories = [{allowed}]")
    database.execute("SET enable_external_access = false; SET lock_configuration = true")
    return database


def _quoted(text: str) -> str:
    """As SQL writes a text. Settings take no parameters; these are the only texts of others that become part of SQL."""
    return "'" + text.replace("'", "''") + "'"


def _paths(cursor: DuckDBPyConnection, files: Collection[int]) -> list[str]:
    """The paths of these files."""
    query = "SELECT path FROM files WHERE file IN (SELECT unnest($files::INTEGER[])) ORDER BY file"
    return [path for (path,) in cursor.execute(query, {"files": list(files)}).fetchall()]


def _order(search: TrialSearch) -> str:
    """What trials are ordered by: one of the columns that a search can name, and what tells trials apart."""
    column = "case_number" if search.sort == "case" else search.sort
    direction = "DESC" if search.order == "down" else "ASC"
    return f"{column} {direction} NULLS LAST, case_number, run, model, attempt"
