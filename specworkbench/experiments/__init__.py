"""Experiments: grids of prompts and configurations, decoded interleaved and written down.

    plan      what is decoded, and in which order
    bench     decodes it; every finished prompt x configuration is on disk at once
    rows      the rows of a report, and the tables of its figures
    report    report.json
    study/    grids over models, rules, lengths and more: every cell with a baseline of its own, kept, gone on with
    models    a target and what its proposers have loaded
    costs     T_target(n), in turns with the machine's own rates
    machine   what the machine reads and multiplies at best
    reads     what a forward has to read and to do, counted
    files     JSON without NaN, files whole or not at all

Nothing is imported here: `files`, `plan` and `rows` import no torch; only reading a proposer's text needs the engine.
"""
