"""Where a benchmark is, what is staged of it, and which modules it consists of."""

import os
from pathlib import Path

import pytest

from trunchray.errors import Problem, UsageError
from trunchray.frontends.benchmark.config import CONFIG, config_without_file
from trunchray.frontends.benchmark.discovery import discover, entrypoints, tool_modules
from trunchray.frontends.benchmark.paths import bad_file, bad_module, bad_syntax, relative_to_module
from trunchray.frontends.benchmark.position import Position
from trunchray.frontends.benchmark.scaffold import scaffold
from trunchray.frontends.benchmark.site import Site, locate
from trunchray.frontends.benchmark.staging import LARGE_FILE, Stage, staged


def write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def stage_of(directory: Path, root: Path | None = None) -> Stage:
    return Stage(directory, root or directory, {})


class TestLocate:
    def test_a_directory_without_config(self, tmp_path):
        """A plain folder is a benchmark of its own."""
        assert locate(tmp_path) == Site(tmp_path, tmp_path, None)

    @pytest.mark.parametrize("extension", ["ts", "mts", "js", "mjs"])
    def test_a_directory_with_a_config(self, tmp_path, extension):
        """The one config of a folder is found."""
        write(tmp_path, f"benchmark.config.{extension}")
        assert locate(tmp_path).config == f"benchmark.config.{extension}"

    def test_the_config_itself(self, tmp_path):
        """Naming the config means its folder."""
        write(tmp_path, "b/benchmark.config.ts")
        expected = Site(tmp_path / "b", tmp_path / "b", "benchmark.config.ts")
        assert locate(tmp_path / "b" / "benchmark.config.ts") == expected

    def test_a_named_config_moves_the_benchmark_directory(self, tmp_path):
        """The benchmark directory is the folder of the config, wherever that is inside PATH."""
        write(tmp_path, "package.json", "b/smoke.ts")
        assert locate(tmp_path, "b/smoke.ts") == Site(tmp_path / "b", tmp_path, "smoke.ts")

    def test_the_root_is_the_nearest_checkout(self, tmp_path):
        """`.git` above wins over a nearer `package.json`; without `.git` the nearest `package.json` is the root."""
        write(tmp_path, "outer/package.json", "outer/inner/package.json", "outer/inner/b/evals/a.ts")
        benchmark = tmp_path / "outer" / "inner" / "b"
        assert locate(benchmark).root == tmp_path / "outer" / "inner"
        (tmp_path / "outer" / ".git").mkdir()
        assert locate(benchmark).root == tmp_path / "outer"

    def test_links_to_the_benchmark_are_resolved(self, tmp_path):
        """A benchmark reached by a link belongs to the repository it really is in."""
        write(tmp_path, "real/package.json", "real/b/evals/a.ts")
        (tmp_path / "link").symlink_to(tmp_path / "real" / "b")
        assert locate(tmp_path / "link") == Site(tmp_path / "real" / "b", tmp_path / "real", None)

    @pytest.mark.parametrize(
        ("path", "config", "message"),
        [
            ("missing", None, "does not exist; give a benchmark's directory or its config file"),
            ("b/evals/a.ts", None, "is not a benchmark config; give a directory, or a file named benchmark.config.ts"),
            ("two", None, "holds several configs: benchmark.config.ts, benchmark.config.mjs; remove all but one"),
            ("b", "nope.ts", "there is no such file"),
            ("b", "../two/benchmark.config.ts", "must be a relative path inside"),
            ("b", "/etc/passwd", "must be a relative path inside"),
            ("b", "", "must be a relative path inside"),
            ("b", "notes.md", r"must be a \.ts, \.mts, \.js or \.mjs file"),
            ("two/benchmark.config.ts", "x.ts", "is a file, so --config 'x.ts' cannot be inside it"),
        ],
    )
    def test_refusals(self, tmp_path, path, config, message):
        """Each impossible request says what to do instead."""
        write(tmp_path, "b/evals/a.ts", "b/notes.md", "two/benchmark.config.ts", "two/benchmark.config.mjs")
        with pytest.raises(UsageError, match=message):
            locate(tmp_path / path, config)


class TestStaging:
    def test_only_what_belongs_to_a_benchmark_is_copied(self, tmp_path):
        """Dot folders, installed packages, and files that hold secrets or steer package managers stay behind."""
        left = [".git/config", "node_modules/x/i.js", "b/node_modules/y.js", ".npmrc", "b/.npmrc", "deno.json", ".env"]
        left += ["deno.jsonc", ".yarnrc.yml", "b/.env.local", ".venv/x.py"]
        kept = ["package.json", "b/evals/a.ts", "shared/util.ts", "b/.hidden.ts"]
        write(tmp_path, *left, *kept)
        with staged(Site(tmp_path / "b", tmp_path, None)) as stage:
            found = {path.relative_to(stage.root).as_posix() for path in stage.root.rglob("*") if path.is_file()}
            assert found == set(kept)
            assert stage.directory == stage.root / "b"
            assert "may hold credentials" in stage.missing(".npmrc")
        assert not stage.root.exists()

    def test_a_benchmark_inside_a_dot_folder_is_copied(self, tmp_path):
        """The benchmark directory is always part of the stage."""
        write(tmp_path, ".bench/b/evals/a.ts", ".bench/other.ts", ".other/x.ts")
        with staged(Site(tmp_path / ".bench" / "b", tmp_path, None)) as stage:
            assert (stage.directory / "evals" / "a.ts").is_file()
            assert not (stage.root / ".other").exists()

    def test_an_empty_benchmark_is_staged(self, tmp_path):
        """A folder without files is staged as an empty folder."""
        with staged(Site(tmp_path, tmp_path, None)) as stage:
            assert list(stage.directory.iterdir()) == []

    def test_large_files_are_copied_when_they_are_asked_for(self, tmp_path):
        """Data of any size can be used, by its name or by a link to it, and what nobody asks for is not copied."""
        for name in ("big.jsonl", "unused.bin"):
            with (tmp_path / name).open("wb") as file:
                file.truncate(LARGE_FILE + 1)
        (tmp_path / "link.jsonl").symlink_to("big.jsonl")
        with staged(Site(tmp_path, tmp_path, None)) as stage:
            assert not (stage.root / "big.jsonl").exists()
            assert bad_file(stage, "link.jsonl") is None
            assert bad_file(stage, "big.jsonl") is None
            assert (stage.root / "link.jsonl").stat().st_size == LARGE_FILE + 1
            assert not (stage.root / "unused.bin").exists()

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    def test_what_may_not_be_read_is_named_when_it_is_needed(self, tmp_path):
        """A file of others that nobody asks for is left out; a folder that may hold modules is a problem."""
        write(tmp_path, "evals/a.ts", "evals/b.ts", "evals/private/c.ts", "data/d.txt", "notes.md")
        for name in ("evals/b.ts", "evals/private", "data", "notes.md"):
            (tmp_path / name).chmod(0)
        found: list[Problem] = []
        try:
            with staged(Site(tmp_path, tmp_path, None)) as stage:
                assert entrypoints(stage, config_without_file("x"), Position("x"), found) == ["evals/a.ts"]
                assert stage.missing("notes.md") == "cannot be read (Permission denied)"
        finally:
            for name in ("evals/private", "data"):
                (tmp_path / name).chmod(0o700)
        assert [str(problem) for problem in found] == [
            "evals: 'evals/b.ts' cannot be read (Permission denied); remove it",
            "evals: 'evals/private' cannot be entered (Permission denied); remove it",
        ]

    def test_links_inside_are_kept_and_links_outside_are_not(self, tmp_path):
        """A link works in the stage as it does in the repository, unless it leaves it."""
        root = tmp_path / "repository"
        write(tmp_path, "secret.ts", "repository/shared/u.ts", "repository/b/evals/a.ts", "repository/.env")
        (root / "b" / "absolute.ts").symlink_to(root / "shared" / "u.ts")
        (root / "b" / "folder").symlink_to("../shared")
        (root / "b" / "loop").symlink_to("..")
        (root / "b" / "outside.ts").symlink_to("../../secret.ts")
        (root / "b" / "gone.ts").symlink_to("nothing.ts")
        (root / "b" / "env.ts").symlink_to("../.env")
        with staged(Site(root / "b", root, None)) as stage:
            assert (stage.directory / "absolute.ts").read_text() == "repository/shared/u.ts"
            assert (stage.directory / "absolute.ts").resolve() == stage.root / "shared" / "u.ts"
            assert (stage.directory / "folder" / "u.ts").is_file()
            assert stage.missing("outside.ts") == "is a link that leaves the repository"
            assert stage.missing("gone.ts") == "is a link to something that is not part of the benchmark"
            assert stage.missing("env.ts") == "is a link to something that is not part of the benchmark"
            assert stage.missing("nowhere.ts") == "does not exist"
            assert stage.missing("evals") == "is not a file"

    def test_special_files_stay_behind(self, tmp_path):
        """A pipe cannot make the compiler wait."""
        os.mkfifo(tmp_path / "pipe.ts")
        with staged(Site(tmp_path, tmp_path, None)) as stage:
            assert stage.missing("pipe.ts") == "is not a regular file"


class TestPaths:
    @pytest.mark.parametrize(
        ("path", "complaint"),
        [
            ("", "must not be empty"),
            (" ", "must not be empty"),
            ("evals\\a.ts", "must be written with '/', not '\\'"),
            ("/evals/a.ts", "must be relative, not absolute"),
            ("~/a.ts", "must be relative, not absolute"),
            ("C:/a.ts", "must be relative, not absolute"),
            ("a\0.ts", "must not hold a NUL, another control character or a broken one"),
            ("a\n.ts", "must not hold a NUL, another control character or a broken one"),
            ("a\ud800.ts", "must not hold a NUL, another control character or a broken one"),
            ("evals/ä b.ts", None),
            ("../shared/x.ts", None),
        ],
    )
    def test_syntax(self, path, complaint):
        """Authored paths are relative and POSIX."""
        assert bad_syntax(path) == complaint

    def test_files(self, tmp_path):
        """A path has to name a file inside the repository; `..` may leave the benchmark but not the repository."""
        write(tmp_path, "r/b/evals/a.ts", "r/shared/x.ts", "outside.ts")
        stage = stage_of(tmp_path / "r" / "b", tmp_path / "r")
        assert bad_module(stage, "evals/a.ts") is None
        assert bad_module(stage, "../shared/x.ts") is None
        assert bad_module(stage, "../../outside.ts") == "leads out of the repository"
        assert bad_module(stage, "evals/b.ts") == "does not exist"
        assert bad_module(stage, "evals/a.py") == "must be a .ts, .mts, .js or .mjs module"
        assert bad_file(stage, "evals") == "is not a file"

    def test_data_paths_are_relative_to_their_module(self):
        """A data file is named as an import would be."""
        assert relative_to_module("evals/deep/a.ts", "./x.jsonl") == "evals/deep/x.jsonl"
        assert relative_to_module("evals/a.ts", "../data/x.jsonl") == "data/x.jsonl"


class TestDiscovery:
    def test_every_module_in_code_unit_order(self, tmp_path):
        """All four extensions, recursively; tests, declarations, packages and dot folders are left out."""
        wanted = ["evals/B.ts", "evals/a.mts", "evals/a/z.js", "evals/b.mjs", "evals/\U0001f600.ts", "evals/\uff5e.ts"]
        left = ["evals/a.test.ts", "evals/a.spec.js", "evals/a.d.ts", "evals/a.d.mts", "evals/x.cjs", "evals/x.json"]
        left += ["evals/node_modules/p/i.js", "evals/.cache/x.ts", "other/x.ts", "evals.ts"]
        write(tmp_path, *wanted, *left)
        assert discover(tmp_path, "evals") == wanted

    def test_nothing_to_discover(self, tmp_path):
        """A folder that is not there holds no module."""
        assert discover(tmp_path, "evals") == []

    def listed(self, tmp_path: Path, **fields) -> tuple[list[str], list[str]]:
        config = CONFIG.read({"protocolVersion": 1, "title": "T", "version": "1.0.0"} | fields, Position("c"), [])
        assert config is not None
        found: list[Problem] = []
        stage, place = stage_of(tmp_path), Position("c")
        modules = entrypoints(stage, config, place, found) + tool_modules(stage, config, place, found)
        return modules, [str(problem) for problem in found]

    def test_listed_modules_keep_their_order(self, tmp_path):
        """An explicit list is the release boundary: exactly those, in that order."""
        write(tmp_path, "evals/a.ts", "evals/b.test.ts", "tools/t.ts", "more/c.ts")
        fields = {"evals": ["more/c.ts", "./evals/b.test.ts"], "tools": []}
        assert self.listed(tmp_path, **fields) == (["more/c.ts", "evals/b.test.ts"], [])

    def test_bad_entries_are_all_named(self, tmp_path):
        """Every wrong entry is one problem, and the others stay."""
        write(tmp_path, "evals/a.ts")
        entries = ["evals/a.ts", "evals//a.ts", "", "evals\\b.ts", "/x.ts", "../x.ts", "x\0.ts", "evals/no.ts", "evals"]
        modules, problems = self.listed(tmp_path, evals=entries)
        assert modules == ["evals/a.ts"]
        assert problems == [
            "c: evals[1]: 'evals//a.ts' is listed twice; remove one",
            "c: evals[2]: '' must not be empty",
            "c: evals[3]: 'evals\\\\b.ts' must be written with '/', not '\\'",
            "c: evals[4]: '/x.ts' must be relative, not absolute",
            "c: evals[5]: '../x.ts' leads out of the repository",
            "c: evals[6]: 'x\\x00.ts' must not hold a NUL, another control character or a broken one",
            "c: evals[7]: 'evals/no.ts' does not exist",
            "c: evals[8]: 'evals' must be a .ts, .mts, .js or .mjs module",
        ]

    def test_no_eval_at_all(self, tmp_path):
        """A benchmark without evals says where they belong."""
        assert self.listed(tmp_path)[1] == [
            "evals: there is no eval module here; add one such as evals/answer.ts, or list `evals` in the config"
        ]

    def test_discovered_names_obey_the_path_rules(self, tmp_path):
        """A file whose name cannot be written portably is named, not recorded."""
        write(tmp_path, "evals/a\\b.ts", "evals/c.ts")
        found: list[Problem] = []
        assert entrypoints(stage_of(tmp_path), config_without_file("x"), Position(""), found) == ["evals/c.ts"]
        assert str(found[0]) == "evals: 'evals/a\\\\b.ts' must be written with '/', not '\\'; rename it"

    def test_what_is_no_file_of_the_repository_is_named(self, tmp_path):
        """Links that lead out or nowhere, and pipes, are problems; folders reached by links are left alone."""
        root = tmp_path / "r"
        write(tmp_path, "out.ts", "r/evals/a.ts", "r/other/b.ts")
        (root / "evals" / "inside.ts").symlink_to("../other/b.ts")
        (root / "evals" / "linked").symlink_to("../other")
        (root / "evals" / "nowhere.ts").symlink_to("no.ts")
        (root / "evals" / "out.ts").symlink_to("../../out.ts")
        os.mkfifo(root / "evals" / "pipe.mjs")
        (root / "evals" / "notes.txt").symlink_to("no.txt")
        write(root, "benchmark.config.ts", ".git/HEAD")
        found: list[Problem] = []
        with staged(locate(root)) as stage:
            modules = entrypoints(stage, config_without_file("x"), Position(""), found)
        assert modules == ["evals/a.ts", "evals/inside.ts"]
        assert [str(problem) for problem in found] == [
            "evals: 'evals/nowhere.ts' is a link to something that is not part of the benchmark; remove it",
            "evals: 'evals/out.ts' is a link that leaves the repository; remove it",
            "evals: 'evals/pipe.mjs' is not a regular file; remove it",
        ]


class TestScaffold:
    def test_a_new_folder_is_filled(self, tmp_path):
        """`init` writes a config, a README, and an example of each form of cases."""
        written = scaffold(tmp_path / "new")
        cases = {"evals/capital.ts", "evals/opening-hours.ts", "evals/sums.jsonl", "evals/opposites.csv"}
        made = {"evals/rivers.ts", "transformers/rivers.ts", "data/rivers.txt"}
        assert {"README.md", "benchmark.config.ts", *cases, *made} <= set(written)
        assert all((tmp_path / "new" / name).is_file() for name in written)

    @pytest.mark.parametrize("taken", ["full", "file"])
    def test_what_exists_is_never_overwritten(self, tmp_path, taken):
        """A folder with something in it, and a file, are refused."""
        write(tmp_path, "full/x", "file")
        with pytest.raises(UsageError, match="is not an empty folder; choose another name"):
            scaffold(tmp_path / taken)
