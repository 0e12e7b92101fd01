"""`python -m specworkbench` is the command `specworkbench`."""

from specworkbench.cli import main

if __name__ == "__main__":
    main()
