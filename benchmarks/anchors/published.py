"""Published mAP on CIFAR-10, by features and by number of bits, each with its source and its rows."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PUBLISHED", "Published"]


@dataclass(frozen=True, slots=True)
class Published:
    """Figures of one method: mAP by number of bits, on which features and rows, and where they are printed."""

    features: str
    method: str
    by_bits: dict[int, float]
    protocol: str
    codes: str
    source: str


_FEW, _ALL = "cifar10-1000q-5000t", "cifar10-1000q-59000t"
_UNKNOWN, _OUT, _OWN = "not said", "out of sample", "learned from their own labels"
_SDH = "TreezzZ/SDH_PyTorch on GitHub, README"
_DPSH = "jiangqy/DPSH-pytorch on GitHub, README, row of VGG-F"
_ADSH = "jiangqy/ADSH-AAAI2018 on GitHub, README of the MATLAB program"
# The rows that many papers repeat, among them this one; its list of methods is that of the paper of ADSH.
_ZHAO = "Zhao et al. 2022 (doi 10.19734/j.issn.1001-3695.2022.03.0076), Table 2, from earlier papers"

PUBLISHED = (
    Published("gist", "SDH", {12: 0.3964, 24: 0.4357, 32: 0.4611, 48: 0.4790}, _FEW, _OUT, _SDH),
    Published("alexnet", "SDH", {12: 0.4966, 24: 0.5226, 32: 0.5377, 48: 0.5411}, _FEW, _OUT, _SDH),
    Published("cnn-f", "ITQ", {12: 0.2619, 24: 0.2754, 32: 0.2861, 48: 0.2941}, _FEW, _OUT, _ZHAO),
    Published("cnn-f", "LFH", {12: 0.4178, 24: 0.5738, 32: 0.6414, 48: 0.6927}, _FEW, _UNKNOWN, _ZHAO),
    Published("cnn-f", "FastH", {12: 0.5971, 24: 0.6632, 32: 0.6847, 48: 0.7020}, _FEW, _UNKNOWN, _ZHAO),
    Published("cnn-f", "SDH", {12: 0.4539, 24: 0.6334, 32: 0.6514, 48: 0.6603}, _FEW, _UNKNOWN, _ZHAO),
    Published("cnn-f", "COSDISH", {12: 0.5831, 24: 0.6614, 32: 0.6802, 48: 0.7016}, _FEW, _UNKNOWN, _ZHAO),
    Published("cnn-f, end to end", "DPSH", {12: 0.6818, 24: 0.7204, 32: 0.7341, 48: 0.7464}, _FEW, _UNKNOWN, _ZHAO),
    Published("cnn-f, end to end", "DPSH", {12: 0.713, 24: 0.727, 32: 0.744, 48: 0.757}, _FEW, _UNKNOWN, _DPSH),
    Published("cnn-f, end to end", "ADSH", {12: 0.8939, 24: 0.9243, 32: 0.9330, 48: 0.9426}, _ALL, _OWN, _ADSH),
)
