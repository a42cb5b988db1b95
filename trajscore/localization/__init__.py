"""Which step was the first wrong one: distributions over the steps of a run, and windows."""

from trajscore.localization._evidence import FirstErrorWindow, compare_locators
from trajscore.localization._locator import FirstErrorLocator

__all__ = ["FirstErrorLocator", "FirstErrorWindow", "compare_locators"]
