"""The machine that computes, in words."""

from __future__ import annotations

import platform


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
