"""Every method of the catalog and each variant, in settings that fit in a blink."""

from starshl.hashers import configurations

# StarSHL's own tests hold its contract; what is here takes a method that fits in a blink.
CASES = {method.name: method for method in configurations() if method.name != "StarSHL"}
# Settings without which a method would take seconds on a handful of rows.
QUICK = {
    "BoostSSC": {"n_pairs": 1000},
    "CGHash": {"max_triplets": 300},
    "ForgivingHash": {"max_iter": 10, "pool": 2},
    "KSH": {"max_iter": 20},
    "LAMP": {"n_pairs": 100, "n_anchors": 30, "max_rows": 100},
    "MLH": {"max_iter": 3, "n_pairs": 3000},
    "MetricLSH": {"n_pairs": 200},
    "SemanticHashing": {"hidden_sizes": (30,), "pretrain_max_iter": 5, "max_iter": 10},
}


def make(name, n_bits=4, seed=0, **params):
    """The hasher of a case, of few bits and with a fixed seed."""
    method = CASES[name]
    return method.make(n_bits, seed=seed, **{**QUICK.get(method.method, {}), **params})
