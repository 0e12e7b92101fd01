"""What a measurement depends on beside its settings: versions, the machine, the device."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from typing import Any

import torch

from specworkbench.engine import LanguageModel
from specworkbench.engine.machine import cpu_model
from specworkbench.engine.run import device_name, library_versions

__all__ = ["environment_of"]


def environment_of(target: LanguageModel) -> dict[str, Any]:
    """Versions, processor, cores, threads, device and dtype; the date is now, UTC.

    >>> from specworkbench.engine import load_model
    >>> found = environment_of(load_model("embedded", device="cpu"))
    >>> found["device"], found["dtype"]
    ('cpu', 'float32')
    """
    return {
        **library_versions(),
        "platform": platform.platform(),
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "device": device_name(target.device),
        "dtype": target.describe()["dtype"],
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
