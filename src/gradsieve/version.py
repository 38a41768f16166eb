"""The version of the package: below everything, so that a record can name it."""

__version__ = "0.2.0"
