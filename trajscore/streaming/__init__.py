"""More runs than memory holds: batches of runs, and accumulators that can be merged."""

from trajscore.streaming._calibration import CalibrationAccumulator
from trajscore.streaming._ranking import RankingAccumulator
from trajscore.streaming._source import iter_batches
from trajscore.streaming._tps import TPSAccumulator

__all__ = ["CalibrationAccumulator", "RankingAccumulator", "TPSAccumulator", "iter_batches"]
