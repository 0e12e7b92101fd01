"""Experiments: grids of prompts and configurations, decoded interleaved and written down.

    plan      what is decoded, and in which order
    bench     decodes it; every finished prompt x configuration is on disk at once
    rows      the rows of a report, and the tables of its figures
    report    report.json
    recorded  traces on disk, joined again by what decoded them
    comparison  several proposers beside plain decoding: what is asked for, and its rows;  side_by_side decodes it
    traces    these beside the plain decoding they are compared with
    costs     T_target(n), proposers, prefills, the loop and memory, in turns; saved and read back (costs.table)
    study/    grids over models, rules, lengths and more: every cell with a baseline of its own, kept, gone on with
    models    a target and what its proposers have loaded
    machine   what the machine reads and multiplies at best
    reads     what a forward has to read and to do, counted
    collector the garbage collector, kept from interrupting what is timed
    files     JSON without NaN, files whole or not at all

Nothing is imported here: `comparison`, `files`, `plan`, `rows`, `traces`, `recorded` and `costs.table` import no torch;
only reading a proposer's text needs the engine.
"""
