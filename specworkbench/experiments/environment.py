"""What a measurement depends on beside its settings: versions, the machine, the device."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from typing import Any

import torch

from specworkbench.engine import LanguageModel
from specworkbench.engine.run import device_name, library_versions


def environment_of(target: LanguageModel) -> dict[str, Any]:
    """Versions, processor, cores, threads, device and dtype; the date is now, UTC."""
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


def cpu_model() -> str:
    """The processor in words, as far as the system says."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine() or "unknown"
