"""What decoding costs on this machine, measured: forwards of the target, proposers, prefills, the loop, memory.

    measure   everything in turns, the order rotating; settings
    forwards  T_target(n): a bare forward over n rows; with the machine's own rates beside it
    rounds    real rounds: what the target's step costs with its rows and rule, proposers, rollback, loop, prefills
    memory    bytes of weights and of caches
    table     what was measured, saved and read back: v(n), c and o for the formulas of `theory`. No torch

Nothing is imported here, so that a saved table needs no torch.
"""
