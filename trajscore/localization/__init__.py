"""Which step was the first wrong one: distributions over the steps of a run, and windows."""

from trajscore.localization._compare import compare_locators
from trajscore.localization._locator import FirstErrorLocator
from trajscore.localization._window import FirstErrorWindow

__all__ = ["FirstErrorLocator", "FirstErrorWindow", "compare_locators"]
