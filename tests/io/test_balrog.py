"""BALROG: each field of an episode, and its moves in a file beside it."""

import pytest

from trajscore import io
from trajscore.io.formats.balrog import Balrog
from trajscore.io.registry import Head

EPISODE = {
    "task": "goto", "progression": 1.0, "episode_return": 0.9, "num_steps": 2, "done": True,
    "input_tokens": 10, "output_tokens": 3, "client": {"model_id": "m"}, "seed": 7,
}  # fmt: skip
MOVES = """Step,Action,Reasoning,Observation,Reward,Done
0,left,Hm.,a wall,0,False
1,up,,a\0 door,1,True
"""


@pytest.mark.parametrize(
    ("names", "recognised"),
    [("progression episode_return", True), ("progression episode_return x", True),
     ("progression", False), ("episode_return", False)],
)  # fmt: skip
def test_files_of_the_format(names, recognised):
    assert Balrog().recognise(Head(dict.fromkeys(names.split()))) == recognised


@pytest.fixture
def episode(write, tmp_path):
    def written(moves=MOVES, name="goto_run_00", **fields):
        path = write(f"{name}.json", EPISODE | fields)
        if moves is not None:
            path.with_suffix(".csv").write_text(moves)
        return path

    return written


def test_all_fields(episode):
    (run,) = io.read_runs(episode())
    assert (run.id, run.task, run.outcome) == ("m/goto/goto_run_00", "goto", 1)
    assert run.stop_reason is None
    assert run.scores == {"progression": 1.0}
    assert (run.meta["model"], run.meta["input_tokens"]) == ("m", 10)
    assert run.extra["seed"] == 7


def test_the_observation_in_a_row_is_the_answer_to_its_move(episode):
    (run,) = io.read_runs(episode())
    moves = [(step.text, step.tool_calls[0].arguments["to"]) for step in run.steps]
    assert moves == [("Hm.", "left"), ("", "up")]
    assert [step.observation for step in run.steps] == ["a wall", "a door"]
    assert [step.tool_calls[0].result for step in run.steps] == ["a wall", "a door"]


def test_a_part_of_the_way_is_no_success(episode):
    (run,) = io.read_runs(episode(progression=0.5, done=False))
    assert (run.outcome, run.stop_reason) == (0, "max_steps")


def test_a_folder_of_episodes_and_summaries(episode, write):
    path = episode()
    episode(name="goto_run_01")
    write("goto_summary.json", {"progression_percentage": 50})
    assert [run.id[-2:] for run in io.read_runs(path.parent)] == ["00", "01"]


def test_an_episode_without_moves_is_refused(episode):
    with pytest.raises(ValueError, match=r"its moves are not there: goto_run_00\.csv"):
        io.read_runs(episode(moves=None))
