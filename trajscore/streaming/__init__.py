"""More runs than memory holds: batches of runs, and accumulators that can be merged."""

from trajscore.streaming._on_grids import CalibrationAccumulator, RankingAccumulator
from trajscore.streaming.accumulator import TPSAccumulator
from trajscore.streaming.batches import iter_batches

__all__ = ["CalibrationAccumulator", "RankingAccumulator", "TPSAccumulator", "iter_batches"]
