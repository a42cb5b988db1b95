"""The version, which files that are written state."""

__version__ = "0.2.0"
