"""What the tests share: they want weft, numpy and pytest, and nothing else."""

import numpy as np
import pytest

import weft


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def same(tensor, array):
    """The tensor holds what the array holds: dtype, shape and elements, NaN at the same places."""
    got = tensor.numpy()
    assert got.dtype == array.dtype and got.shape == array.shape, (got.dtype, got.shape, array.dtype, array.shape)
    np.testing.assert_array_equal(got, array)


def refused(what, *words):
    """Calls `what`, which must raise a weft.Error whose message has all of these words."""
    with pytest.raises(weft.Error) as caught:
        what()
    for word in words:
        assert word in str(caught.value), str(caught.value)
