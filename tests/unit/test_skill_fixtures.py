"""Files that the cases of a skill name: where they are looked for, where they land, and what is refused."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from trunchray.core.digest import sha256
from trunchray.core.pinned_file import PinnedFile, read_address
from trunchray.errors import UsageError
from trunchray.frontends.skill.case_file import SkillCase
from trunchray.frontends.skill.fixtures import Fixtures, Root, read_fixtures, roots_of
from trunchray.frontends.skill.project import Project

COMMIT = "0123456789abcdef0123456789abcdef01234567"
Read = Callable[..., Fixtures]


def case(*files: str, id: str = "one") -> SkillCase:
    return SkillCase(place=f"cases.json: cases[0] ({id!r})", id=id, folder=id, input="x", files=files, written={})


def empty(_: PinnedFile) -> bytes:
    return b""


def never(_: PinnedFile) -> bytes:
    raise AssertionError("nothing is fetched")


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Reads the fixtures of cases in a project with a case file of its own folder."""
    for name in ("project/evals/skill/files", "project/data"):
        (tmp_path / name).mkdir(parents=True)
    project = tmp_path / "project"
    (project / "data" / "a.csv").write_bytes(b"of the project")
    (project / "evals" / "skill" / "files" / "b.md").write_bytes(b"of the cases")
    (tmp_path / "secret.txt").write_bytes(b"secret")

    def reading(*cases: SkillCase, fetch: Callable[[PinnedFile], bytes] = never) -> Fixtures:
        roots = [Root(project, hidden=False), Root(project / "evals" / "skill", hidden=True)]
        return read_fixtures(cases, roots, skill_dir=".agents/skills", fetch=fetch)

    return reading


def test_a_file_of_the_project_comes_before_one_beside_the_cases(read: Read, tmp_path: Path):
    """Both are looked for by the path as it is written, which is where it lands."""
    (tmp_path / "project" / "evals" / "skill" / "data").mkdir()
    (tmp_path / "project" / "evals" / "skill" / "data" / "a.csv").write_bytes(b"another")
    found = read(case("data/a.csv", "files/b.md"))
    assert [(each.path, found.contents[each.sha256]) for each in found.of_case["one"]] == [
        ("data/a.csv", b"of the project"),
        ("files/b.md", b"of the cases"),
    ]
    assert found.entries == {"data/a.csv": sha256(b"of the project"), "files/b.md": sha256(b"of the cases")}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("data/none.csv", "is neither in"),
        ("../secret.txt", "leads out of its folder"),
        ("/etc/passwd", "is not relative"),
        ("~/.ssh/id_rsa", "is not relative"),
        ("C:\\data.csv", "is a path of Windows"),
        ("C:/data.csv", "is a path of Windows"),
        ("data\\a.csv", "is a path of Windows"),
        ("data/\0", r"holds '\x00', a control character"),
        ("data/\n.csv", r"holds '\n', a control character"),
        ("data/\ud800.csv", r"holds '\ud800', a control character or a lone surrogate"),
        ("", "is empty"),
        ("data", "is a folder; name its files one by one"),
        ("out.csv", "is a link that leads out of"),
        ("pipe", "is neither a file nor a folder"),
        (".agents/skills/x/SKILL.md", "where the tool reads skills from"),
        (".AGENTS/skills", "where the tool reads skills from"),
        (".git/config", "git's own folder"),
        ("http://github.com/o/r/blob/v1/a", "is not the URL of a file on GitHub"),
    ],
)
def test_an_entry_that_cannot_be_used_stops_the_run_before_any_case(
    read: Read, tmp_path: Path, entry: str, message: str
):
    """The message names the case, the entry and the reason, in place of a warning."""
    (tmp_path / "project" / "out.csv").symlink_to(tmp_path / "secret.txt")
    os.mkfifo(tmp_path / "project" / "pipe")
    with pytest.raises(UsageError) as refused:
        read(case(entry))
    assert str(refused.value).startswith("cases.json: cases[0] ('one'): files: ")
    assert message in str(refused.value)


@pytest.mark.parametrize("entry", [".env", ".ssh/id_ed25519", "link", "data/.netrc"])
def test_hidden_files_of_a_project_that_was_only_found_are_no_fixtures(read: Read, tmp_path: Path, entry: str):
    """With dotfiles in git it may be somebody's home, and a stranger's case file could ask for a key."""
    project = tmp_path / "project"
    for name in (".env", ".ssh/id_ed25519", "data/.netrc"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text("a key")
    (project / "link").symlink_to(".env")
    with pytest.raises(UsageError, match=r"is hidden in .*; put a copy beside the case file, or name the project"):
        read(case(entry))


def test_a_hidden_file_is_a_fixture_where_somebody_has_put_it_there(read: Read, tmp_path: Path):
    """Beside the case file, also by its path from the project; or in a project that was named."""
    evals = tmp_path / "project" / "evals" / "skill"
    (evals / ".env").write_text("MODE=test")
    assert read(case(".env")).entries == {".env": sha256(b"MODE=test")}
    assert list(read(case("evals/skill/.env")).contents.values()) == [b"MODE=test"]
    (tmp_path / "project" / ".flags").write_text("x")
    roots = roots_of(Project(tmp_path / "project", named=True), evals / "cases.json", evals)
    assert read_fixtures([case(".flags")], roots, skill_dir="s").entries == {".flags": sha256(b"x")}


def test_what_is_nowhere_else_is_looked_for_in_the_skill(tmp_path: Path):
    """That is what paths in files of skill-creator are relative to; what is hidden there is no fixture."""
    skill = tmp_path / "skill"
    (skill / "evals" / "files").mkdir(parents=True)
    (skill / "evals" / "files" / "people.csv").write_text("Ann")
    (skill / ".env").write_text("a key")
    roots = roots_of(None, skill / "evals" / "cases.json", skill)
    found = read_fixtures([case("evals/files/people.csv")], roots, skill_dir="s")
    assert found.entries == {"evals/files/people.csv": sha256(b"Ann")}
    with pytest.raises(UsageError, match="is hidden in"):
        read_fixtures([case(".env")], roots, skill_dir="s")


def test_what_is_hidden_beside_a_case_file_in_the_home_folder_is_no_fixture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """All of a login is beside it there."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".netrc").write_text("a key")
    with pytest.raises(UsageError, match="is hidden in"):
        read_fixtures([case(".netrc")], roots_of(None, tmp_path / "cases.json", tmp_path / "skill"), skill_dir="s")


def test_all_entries_that_cannot_be_used_are_named_at_once(read: Read):
    """One line for each."""
    with pytest.raises(UsageError) as refused:
        read(case("x", "data/a.csv", "y"), case("z", id="two"))
    assert [line.split(" files: ")[1].split()[0] for line in str(refused.value).splitlines()] == ["'x'", "'y'", "'z'"]


@pytest.mark.parametrize(
    "files",
    [
        ("data/a.csv", "data/a.csv"),
        ("data/a.csv", "data/./a.csv"),
        (f"https://github.com/o/r/blob/{COMMIT}/x/b.md", f"https://github.com/o/s/blob/{COMMIT}/y/b.md"),
        (f"https://github.com/o/r/blob/{COMMIT}/x/data", "data/a.csv"),
    ],
)
def test_two_files_of_a_case_never_land_on_one_path(read: Read, files: tuple[str, str]):
    """Nor one where another needs a folder."""
    with pytest.raises(UsageError, match="lands where another file of the case is"):
        read(case(*files), fetch=empty)


def test_a_file_on_github_lands_at_the_root_under_its_name(read: Read):
    """It is fetched once for all cases, and its hash is listed under its address."""
    address, fetched = f"https://github.com/o/r/blob/{COMMIT}/a%20b/memo.md", list[PinnedFile]()

    def fetch(file: PinnedFile) -> bytes:
        fetched.append(file)
        return b"memo"

    found = read(case(address), case(address, id="two"), fetch=fetch)
    assert [each.path for each in found.of_case["two"]] == ["memo.md"]
    assert fetched == [PinnedFile("o", "r", COMMIT, "a b/memo.md")]
    assert found.entries == {address: sha256(b"memo")}


@pytest.mark.parametrize(
    ("ref", "location"),
    [
        (COMMIT, f"o/r/{COMMIT}/a%20b.md"),
        (COMMIT.upper(), f"o/r/{COMMIT}/a%20b.md"),
        ("v1.2", "o/r/refs/tags/v1.2/a%20b.md"),
        ("deadbee-1", "o/r/refs/tags/deadbee-1/a%20b.md"),
    ],
)
def test_a_name_that_is_no_commit_is_asked_for_as_a_tag(ref: str, location: str):
    """So a branch of that name is not found."""
    assert read_address(f"https://github.com/o/r/blob/{ref}/a%20b.md").location == location


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("https://github.com/o/r/blob/main/a", "names the branch 'main'"),
        ("https://github.com/o/r/blob/HEAD/a", "names the branch 'HEAD'"),
        ("https://github.com/o/r/blob/develop/a", "names the branch"),
        ("https://github.com/o/r/blob/0123abc/a", "write all 40"),
        ("https://github.com/o/r/blob/feature%2Fx/a", "neither a commit nor a tag without '/'"),
        (f"https://github.com/o/r/blob/{COMMIT}/../../a", "leads out of its folder"),
        (f"https://github.com/o/r/blob/{COMMIT}/a?raw=1", "is not the URL"),
        (f"https://github.com/o/r/blob/{COMMIT}/a#L3", "is not the URL"),
        (f"https://user:key@github.com/o/r/blob/{COMMIT}/a", "is not the URL"),
        (f"https://github.com.evil.example/o/r/blob/{COMMIT}/a", "is not the URL"),
        (f"https://github.com/o/r/raw/{COMMIT}/a", "is not the URL"),
        (f"https://github.com/o/r/blob/{COMMIT}/", "is not the URL"),
        ("https://github.com/o/r/blob/v1", "is not the URL"),
        ("ftp://github.com/o/r/blob/v1/a", "is not the URL"),
        ("https://github.com/o/r/blob/v1/%2e", "is not the URL"),
    ],
)
def test_only_files_that_never_change_are_taken_from_github(address: str, message: str):
    """Nothing but a commit or a tag pins one."""
    with pytest.raises(ValueError, match=message):
        read_address(address)


@pytest.mark.parametrize("name", ["a" * 300, "a/" * 3000 + "a", "circle/a"])
def test_a_name_that_cannot_be_looked_for(read: Read, tmp_path: Path, name: str):
    """It is an entry that cannot be used like any other, and named."""
    (tmp_path / "project" / "circle").symlink_to("circle")
    with pytest.raises(UsageError, match=r"cases\[0\] \('one'\): files: ") as refused:
        read(case(name))
    assert "correct the entry" in str(refused.value)
    assert len(str(refused.value)) < 1000
