"""Training of what the workbench ships: the embedded family. Run `python -m specworkbench.training --help`."""
