"""An engine without a cluster: everything is pickled, and runs in this process."""

from functools import reduce
from operator import add

import cloudpickle


class InlineEngine:
    """Runs tasks at once; what they get and return goes through pickle, as on the way to other processes."""

    def __init__(self):
        self.names = []

    def place(self, make, *arguments):
        return self._run(make, *arguments)

    def map(self, function, items, *placed):
        return (self._run(function, item, *placed) for item in items)

    def total(self, function, items, *placed, report):
        results = []
        for item in items:
            results.append(self._run(function, item, *placed))
            report(item)
        while len(results) > 1:
            results = [reduce(add, results[start : start + 2]) for start in range(0, len(results), 2)]
        return results[0]

    def fetch(self, handle):
        return handle

    def _run(self, function, *arguments):
        self.names.append(getattr(function, "func", function).__name__)
        function, *arguments = cloudpickle.loads(cloudpickle.dumps((function, *arguments)))
        return function(*arguments)
