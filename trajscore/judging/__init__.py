"""A language model that judges runs step by step, over any OpenAI-compatible endpoint."""

from trajscore.judging._step_judge import StepJudge

__all__ = ["StepJudge"]
