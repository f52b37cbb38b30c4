"""The folder of an attempt: what is complete stays as it is, and what is kept of a workspace has its limits."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from trunchray.adapters.attempt_folder import AttemptFolder, AttemptWriter, timings
from trunchray.adapters.store import Store
from trunchray.adapters.survey import Survey, TreeCaps
from trunchray.adapters.tree import tree_digest
from trunchray.core.attempt import AttemptTiming
from trunchray.core.rubric import Grade, Graded, Grading
from trunchray.errors import StoreError


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return Store(str(tmp_path / "attempt") if request.param == "local" else f"memory://{uuid.uuid4().hex}/attempt")


class Room:
    """What an attempt has left, before it is kept."""

    def __init__(self, folder: Path, who: str = "somebody") -> None:
        self.folder, self.cwd, self.who = folder / who, folder / who / "cwd", who
        self.cwd.mkdir(parents=True)
        for name in ("stdout", "stderr"):
            (self.folder / name).write_text(who)
        self.write("made.md", who)

    def write(self, path: str, text: str) -> None:
        (self.cwd / path).parent.mkdir(parents=True, exist_ok=True)
        (self.cwd / path).write_text(text)

    def link(self, path: str, to: str) -> None:
        (self.cwd / path).symlink_to(to)

    def keep(self, writer: AttemptWriter, caps: TreeCaps | None = None) -> Survey:
        return writer.keep(self.folder / "stdout", self.folder / "stderr", self.cwd, caps or TreeCaps())

    @property
    def timing(self) -> AttemptTiming:
        return AttemptTiming(case_id="create-1", config="skill", status="ok", captured_at="then", reason=self.who)


def content(store: Store) -> dict[str, bytes]:
    return {path: store.read(path) for path in store.find()}


def complete(store: Store, room: Room) -> dict[str, bytes]:
    writer = AttemptFolder(store.uri).begin({"id": 1}, "Do it.")
    room.keep(writer)
    assert writer.finish(room.timing)
    return content(store)


def test_what_is_asked_is_there_while_it_runs(store: Store):
    """The rest comes when it has ended."""
    writer = AttemptFolder(store.uri).begin({"id": "ü"}, "Do it.")
    assert store.find() == ["case.json", "prompt.txt"]
    assert "ü" in store.read("case.json").decode()
    assert AttemptFolder(store.uri).timing() is None
    assert writer is not None


@pytest.mark.parametrize("when", ["before it began", "while it ran", "while it was kept"])
def test_a_complete_attempt_is_neither_removed_nor_torn_nor_replaced(store: Store, tmp_path: Path, when: str):
    """By a worker that has not seen it, whenever it became complete."""
    quick, slow, others = Room(tmp_path, "quick"), Room(tmp_path, "slow"), AttemptFolder(store.uri)
    slow.write("more.md", "slow")
    before: dict[str, bytes] = {}
    if when == "before it began":
        before = complete(store, quick)
    writer = others.begin(None, "Do something else.")
    if when == "while it ran":
        before = complete(store, quick)
    slow.keep(writer)
    if when == "while it was kept":
        complete(store, quick)
        before = {path: said for path, said in content(store).items() if not path.startswith(".tries/")}
    assert not writer.finish(slow.timing)
    assert content(store) == before
    assert before["cwd/made.md"] == before["transcript.jsonl"] == b"quick"
    assert others.timing() == quick.timing


def test_links_on_other_stores_lead_to_what_is_kept(tmp_path: Path):
    """A link is a copy of a file that is kept, and counts as one; what was left out does not come in through it."""
    room, store = Room(tmp_path), Store(f"memory://{uuid.uuid4().hex}/attempt")
    room.write("large.bin", "x" * 500)
    room.write("sub/.git/secret", "key")
    room.write("small.md", "y" * 100)
    for path, to in (("a", "large.bin"), ("b", "sub/.git/secret"), ("c", "small.md"), ("d", "c"), ("e", "small.md")):
        room.link(path, to)
    writer = AttemptFolder(store.uri).begin(None, "x")
    found = room.keep(writer, TreeCaps(file=400, total=350))
    assert writer.finish(room.timing)
    kept = {path.removeprefix("cwd/"): len(said) for path, said in content(store).items() if path.startswith("cwd/")}
    assert kept == {"made.md": 8, "small.md": 100, "c": 100, "d": 100}
    assert found.left_out == [
        "a: a link to 'large.bin', which is no file that is kept",
        "b: a link to 'sub/.git/secret', which is no file that is kept",
    ]
    assert found.too_large == ["large.bin", "e"]


def test_links_that_lead_out_of_a_copy_are_left_out(tmp_path: Path):
    """Whoever writes the path of the room into a link has one that stays inside only as long as there is the room."""
    room = Room(tmp_path)
    room.write("d/x.md", "x")
    up = "../" * len(room.cwd.parts)
    room.link("round", f"{up}{str(room.cwd)[1:]}/made.md")
    room.link("beside", "../cwd/made.md")
    room.link("d/short", "../../cwd/made.md")
    room.link("d/good", "../made.md")
    room.link("good", "d/../d/x.md")
    found = Survey.of(room.cwd)
    assert found.links == {"d/good": "../made.md", "good": "d/../d/x.md"}
    assert [line.split(":")[0] for line in found.left_out] == ["beside", "round", "d/short"]


def test_the_timings_among_paths():
    """Neither those that an attempt has written itself, nor those of one that has not ended."""
    paths = ["a/timing.json", "a/cwd/timing.json", "b/prompt.txt", "b/cwd/x/timing.json", "cwd/timing.json"]
    paths += ["b/.tries/00/cwd/timing.json", "b/.tries/00/timing.json", "timing.json.md"]
    assert timings(paths) == ["a/timing.json", "cwd/timing.json"]


GRADER, ATTEMPT = "a" * 64, "b" * 64


def graded(evidence: str, *, grader: str = GRADER, attempt: str = ATTEMPT) -> Grading:
    grades = Graded((Grade(text="line", passed=True, evidence=evidence),))
    return Grading.of("create-1", grades, grader=grader, attempt=attempt)


def test_gradings_are_those_of_one_attempt(store: Store):
    """Grades of anything else do not count for it, though the grader is the same."""
    folder = AttemptFolder(store.uri)
    folder.keep_grading(graded("seen"))
    assert folder.grading(GRADER, ATTEMPT) == graded("seen")
    assert folder.grading(GRADER, "c" * 64) is None
    assert folder.grading("c" * 64, ATTEMPT) is None


def test_the_first_grading_of_two_counts_for_both(store: Store):
    """So that what a row says is what the folder says."""
    folder = AttemptFolder(store.uri)
    for one, two in ((graded("one"), graded("two")), (graded("three", grader="c" * 64), graded("4", grader="c" * 64))):
        assert folder.keep_grading(one) == one
        assert AttemptFolder(store.uri).keep_grading(two) == one
    assert len(store.find()) == 2


def test_grades_that_cannot_be_stored_do_not_count(store: Store):
    """A file that somebody has edited is in their way, and is not replaced."""
    folder, mine = AttemptFolder(store.uri), graded("seen", grader="c" * 64)
    folder.keep_grading(graded("seen"))
    folder.keep_grading(mine)
    (name,) = set(store.find()) - {"grading.json"}
    store.write(name, b"{}")
    folder.keep_error("it slept", "c" * 64)
    before = store.find()
    with pytest.raises(StoreError, match=f"{name} is in the way of a grading and is none; move it elsewhere"):
        folder.keep_grading(mine)
    assert (store.find(), store.read(name)) == (before, b"{}")


def test_grades_or_an_error(store: Store):
    """There is never grading-error.json beside grading.json; another grader's failure has a name of its own."""
    folder = AttemptFolder(store.uri)
    folder.keep_error("it slept", GRADER)
    assert store.find() == ["grading-error.json"]
    folder.keep_grading(graded("seen"))
    assert store.find() == ["grading.json"]
    folder.keep_error("it slept", "c" * 64)
    assert store.find() == ["grading-error-cccccccccccc.json", "grading.json"]
    folder.keep_grading(graded("seen", grader="c" * 64))
    assert [path.startswith("grading-error") for path in store.find()] == [False, False]


def test_trees_are_told_apart(tmp_path: Path):
    """By names, content and links; by nothing else, and where it is wanted by some names only."""
    room = Room(tmp_path)
    before, some = tree_digest(room.cwd), tree_digest(room.cwd, ["made.md"])
    (room.cwd / "made.md").chmod(0o700)
    assert tree_digest(room.cwd) == before
    room.link("link", "made.md")
    assert tree_digest(room.cwd) != before
    assert tree_digest(room.cwd, ["made.md"]) == some
    room.write("made.md", "else")
    assert tree_digest(room.cwd, ["made.md"]) != some
