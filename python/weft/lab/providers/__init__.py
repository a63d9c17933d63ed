"""Kernels in Python that weft.lab knows by name: a file for each."""
