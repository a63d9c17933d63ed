"""Layers and functions one after the other."""

from weft._weft._nn import Module


class Sequential(Module):
    """One part after the other: modules, and functions of a tensor.

        model = nn.Sequential(nn.Conv2d(1, 8), weft.relu, nn.flatten, nn.Linear(8 * 26 * 26, 10)).build()

    Modules are named by their place among all parts, so that what has no parameters counts too.
    """

    def __init__(self, *parts):
        super().__init__()
        self.__dict__["_parts"] = []  # no list of modules, which would have names of its own
        for part in parts:
            self.append(part)

    def append(self, part):
        """Adds a part at the end, and gives the module back."""
        if not callable(part):
            raise TypeError(f"nn.Sequential takes modules and functions of a tensor, got {type(part).__name__}")
        if isinstance(part, Module):
            setattr(self, str(len(self._parts)), part)
        self._parts.append(part)
        return self

    def forward(self, x):
        for part in self._parts:
            x = part(x)
        return x

    def __len__(self):
        return len(self._parts)

    def __getitem__(self, place):
        return self._parts[place]
