from __future__ import annotations

import pytest
from pydantic import ValidationError

from trunchray.core.agent import Limits, Mock, ModelAgent, Pacing, Price, PythonAgent
from trunchray.core.plan import keys_digest, make_plan
from trunchray.core.run import Regrades, RunSpec, Selection, default_run_id, extend
from trunchray.core.trial import trial_key
from trunchray.errors import UsageError

INDEX = [(f"c{i}", "even" if i % 2 == 0 else "odd") for i in range(100)]
A = ModelAgent(name="a", model="mock/echo")
B = ModelAgent(name="b", model="mock/echo", mock=Mock(seed=1))


def spec(**changes: object) -> RunSpec:
    fields = dict[str, object](
        run_id="r", title="T", release="memory://r", release_digest="d" * 64, agents=(A,), shard_size=30
    )
    return RunSpec.model_validate(fields | changes)


def keys(run: RunSpec) -> set[str]:
    return {key for shard in make_plan(run, INDEX).shards for key in shard.trial_keys()}


def test_known_identities_stay_known():
    """Digests and trial keys of an earlier version are the same today: finished work stays finished."""
    assert A.digest == "51ab30b2c439c5fe3012a434fc4a97feb8bf68e04038defdb06897a2c9d6d182"
    assert trial_key("d" * 64, "c1", A.digest, 1) == "66ecb525abbe337a9b63d02bc4176d1e14e94010d0dd64a265e4a68e6685c25d"


def test_what_is_not_asked_of_the_model_is_not_identity():
    """Names, credentials and pacing may change in the middle of a run; parameters and limits make another agent."""
    same = A.model_copy(update={"name": "z", "api_key_env": "KEY", "pacing": Pacing(max_in_flight=7)})
    assert ModelAgent.model_validate(same.model_dump()).digest == A.digest
    assert ModelAgent(name="a", model="mock/echo", limits=Limits(max_steps=3)).digest != A.digest
    assert ModelAgent(name="a", model="mock/echo", params={"temperature": 0.5}).digest != A.digest
    several = A.model_copy(update={"transport": "openai", "api_key_env": ("A", "B"), "price": Price(input=1, output=1)})
    assert ModelAgent.model_validate(several.model_dump()).digest == A.digest
    assert ModelAgent(name="a", model="mock/echo", headers={"X-Beta": "1"}).digest != A.digest
    assert ModelAgent(name="a", model="mock/echo", system_prompt="user").digest != A.digest


def test_every_trial_is_planned_once():
    """Shards split the trials of each agent and attempt without loss or repetition, none larger than asked."""
    plan = make_plan(spec(agents=(A, B), attempts=2), INDEX)
    planned = [key for shard in plan.shards for key in shard.trial_keys()]
    assert len(planned) == len(set(planned)) == plan.trials == 400
    assert max(len(shard.case_ids) for shard in plan.shards) == 30
    assert len({shard.id for shard in plan.shards}) == len(plan.shards) == 16
    assert {(t.agent, t.attempt) for shard in plan.shards for t in shard.trials()} == {
        (name, n) for name in "ab" for n in (1, 2)
    }


def test_attempts_of_a_python_task_take_turns():
    """Each shard waits for the one with the same cases at the attempt before; models are asked all at a time."""
    task = PythonAgent(kind="python", name="t", task="m:t", code="c" * 64, timeout=1)
    plan = make_plan(spec(agents=(A, task), attempts=3), INDEX)
    turns = plan.turns()
    shards = {shard.id: shard for shard in plan.shards}
    waiting = [shard for shard in plan.shards if shard.agent is task and shard.attempt > 1]
    assert set(turns) == {shard.id for shard in waiting}
    for shard in waiting:
        before = shards[turns[shard.id]]
        assert (before.agent, before.attempt, before.case_ids) == (task, shard.attempt - 1, shard.case_ids)
    assert make_plan(spec(attempts=3), INDEX).turns() == {}


def test_more_models_or_attempts_only_add_shards():
    """Whatever was planned stays planned under the same shard ids when a run is extended."""
    before = {shard.id: shard.case_ids for shard in make_plan(spec(), INDEX).shards}
    after = {shard.id: shard.case_ids for shard in make_plan(spec(agents=(A, B), attempts=3), INDEX).shards}
    assert before.items() <= after.items()


def test_a_run_that_stops_early_is_a_balanced_random_sample():
    """The first shards ask all models the same cases, in another order than the author's; the seed decides which."""
    plan = make_plan(spec(agents=(A, B)), INDEX)
    first, second = plan.shards[:2]
    assert first.case_ids == second.case_ids
    assert (first.agent.name, second.agent.name) == ("a", "b")
    assert first.case_ids != tuple(case_id for case_id, _ in INDEX[:30])
    assert make_plan(spec(seed=1), INDEX).shards[0].case_ids != first.case_ids


def test_a_larger_sample_holds_the_smaller_one():
    """Sampling is by the seed and each case's own id, so samples nest, and other cases do not change the draw."""
    small, large = (keys(spec(selection=Selection(sample=n, seed=5))) for n in (10, 40))
    assert len(small) == 10
    assert small < large


def test_a_selection_by_eval_and_case():
    """Evals and cases are both conditions, and a sample is drawn from what they leave."""
    plan = make_plan(spec(selection=Selection(evals=("odd",), cases=("c1", "c2", "c3"))), INDEX)
    assert plan.evals == {"c1": "odd", "c3": "odd"}


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        (Selection(evals=("evn",)), "select.evals: the release has no eval 'evn' — did you mean 'even'?"),
        (Selection(cases=("zzz",)), "select.cases: the release has no case 'zzz'; known: c0, c1"),
        (Selection(evals=("odd",), cases=("c2",)), "leaves no case"),
    ],
)
def test_a_selection_of_nothing_is_refused(selection: Selection, message: str):
    """An unknown eval or case is named with its nearest neighbour; an empty selection is refused."""
    with pytest.raises(UsageError, match=message.replace("?", r"\?")):
        make_plan(spec(selection=selection), INDEX)


def test_the_same_agent_twice_is_refused():
    """Two models with one name, or one model under two names, would count the same trials twice."""
    with pytest.raises(ValidationError, match="named 'a'"):
        spec(agents=(A, B.model_copy(update={"name": "a"})))
    with pytest.raises(ValidationError, match="same model"):
        spec(agents=(A, A.model_copy(update={"name": "other"})))


def test_extending_keeps_what_was_there():
    """Added models and attempts join; models left out of the new command stay in the run."""
    run = extend(spec(agents=(A,), attempts=2), spec(agents=(B,), attempts=1, release="elsewhere"))
    assert [agent.name for agent in run.agents] == ["a", "b"]
    assert (run.attempts, run.release) == (2, "elsewhere")


def test_another_question_under_the_same_run_id_is_refused():
    """Every field that differs is named with both values."""
    other = spec(
        seed=1,
        shard_size=64,
        release_digest="e" * 64,
        selection=Selection(sample=3),
        agents=(A.model_copy(update={"params": {"seed": 1}}),),
    )
    with pytest.raises(UsageError) as refusal:
        extend(spec(), other)
    for text in (
        "seed was 0 and is now 1",
        "shard_size was 30",
        "the benchmark has changed since: its release was dddddddddddd and is now eeeeeeeeeeee\n",
        "select.sample was None",
        "model 'a'",
        "--run-id",
    ):
        assert text in str(refusal.value)


def test_another_release_can_grade_what_is_stored():
    """The refusal of another release names the command that grades the stored answers by it; no other refusal does."""
    with pytest.raises(UsageError, match=r"`trunchray regrade memory://run --release memory://new` grades"):
        extend(spec(), spec(release="memory://new", release_digest="e" * 64), at="memory://run")
    with pytest.raises(UsageError) as refusal:
        extend(spec(), spec(seed=1), at="memory://run")
    assert "regrade" not in str(refusal.value)


def test_long_selections_are_cut_in_messages():
    """However many cases they name."""
    one, other = (spec(selection=Selection(cases=tuple(f"{name}{n}" for n in range(9999)))) for name in "ab")
    with pytest.raises(UsageError) as refusal:
        extend(one, other)
    assert "select.cases was ('a0', 'a1', " in str(refusal.value)
    assert len(str(refusal.value)) < 500


def test_a_renamed_model_is_refused():
    """A model under another name would be counted twice; the message says what it is called."""
    renamed = ModelAgent.model_validate(A.model_dump() | {"name": "other"})
    with pytest.raises(UsageError, match=r"knows model 'other' as 'a'.*--run-id"):
        extend(spec(), spec(agents=(renamed,)))


def test_the_default_run_id_follows_the_question():
    """The same question gets the same run, so a repeated command continues it; another question gets another."""
    one = default_run_id("slug", "d" * 64, Selection(), 0, 128)
    assert one == default_run_id("slug", "d" * 64, Selection(), 0, 128)
    assert one.startswith("slug-")
    assert one != default_run_id("slug", "d" * 64, Selection(sample=5), 0, 128)


def test_a_digest_of_keys_ignores_their_order():
    """Completeness is a question of sets."""
    assert keys_digest(["b", "a"]) == keys_digest(["a", "b"]) != keys_digest(["a"])


def test_a_run_that_asks_is_stored_as_ever():
    """What only regrades have is no part of other runs' files."""
    assert "regrades" not in spec().model_dump_json()
    there = spec(regrades=Regrades(run="memory://there"))
    assert RunSpec.model_validate_json(there.model_dump_json()) == there


def test_answers_do_not_mix():
    """A run that grades stored answers is extended by such answers alone, wherever their run is by then."""
    one, other = (spec(regrades=Regrades(run=f"memory://{name}")) for name in ("one", "other"))
    assert extend(one, other).regrades == other.regrades
    for first, second, source in ((one, spec(), "asked for"), (spec(), one, "those of 'memory://one'")):
        with pytest.raises(UsageError, match=f"are now {source}"):
            extend(first, second)
