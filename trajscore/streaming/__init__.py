"""More runs than memory holds: read in batches, added up by accumulators, merged from anywhere."""

from trajscore.streaming._calibration import CalibrationAccumulator
from trajscore.streaming._ranking import RankingAccumulator
from trajscore.streaming._source import iter_batches
from trajscore.streaming._tps import TPSAccumulator

__all__ = ["CalibrationAccumulator", "RankingAccumulator", "TPSAccumulator", "iter_batches"]
