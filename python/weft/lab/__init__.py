"""The kernel lab: which kernel of an operation is right, which is faster, by how much, and how sure that is.

    weft.lab.compare(["native", "torch", "mine.py"], "softmax")

docs/lab.md says how it measures and how a kernel in Python is written.
"""

from weft.lab.calls import Operation, integers
from weft.lab.functions import get_kernel
from weft.lab.compared import compare
from weft.lab.listing import list, operations
from weft.lab.results import Comparison, Report, Row

__all__ = ["Comparison", "Operation", "Report", "Row", "compare", "get_kernel", "integers", "list", "operations"]
