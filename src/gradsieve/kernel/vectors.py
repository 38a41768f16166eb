"""The kernel's passes over whole vectors, for `gradsieve.torch`."""

from gradsieve.kernel._native import norm, products

__all__ = ["norm", "products"]
