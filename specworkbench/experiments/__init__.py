"""Experiments: grids of prompts and configurations, decoded interleaved and written down.

    plan      what is decoded, and in which order
    bench     decodes it; every finished prompt x configuration is on disk at once
    rows      the rows of a report, and the tables of its figures
    report    report.json
    files     JSON without NaN, files whole or not at all

Nothing is imported here: `files`, `plan` and `rows` import no torch; only reading a proposer's text needs the engine.
"""
