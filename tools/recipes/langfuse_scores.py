"""Langfuse: its client writes what a guard says of finished runs beside their traces."""

from typing import Any

from trajscore import io
from trajscore.integrations import Guard


def write_scores(client: Any, runs: list[io.Run], guard: Guard) -> None:
    """Give each turn the p-value of its run so far, and each run whether it was flagged."""
    for run, looks in zip(runs, guard.looks(runs), strict=True):
        turns = [step for step in run.steps if step.actor in ("agent", "user")]
        flagged = any(look.stop for look in looks)
        of_run = {"trace_id": run.id, "name": "trajscore_flag", "data_type": "BOOLEAN"}
        client.create_score(**of_run, value=float(flagged), score_id=f"{run.id} flag")
        for turn, look in zip(turns, looks, strict=True):
            if turn.span is not None:
                of_turn = {"trace_id": run.id, "observation_id": turn.span}
                again = f"{run.id} {turn.span}"  # a score that is sent again replaces itself
                value = 1 - look.suspicion
                client.create_score(**of_turn, name="trajscore_p", value=value, score_id=again)
    client.flush()


# ------------------------------------------------------------------ your log and your guard

if __name__ == "__main__":
    from langfuse import Langfuse

    write_scores(Langfuse(), io.read_runs("traces.jsonl"), Guard.load("guard.skops"))
