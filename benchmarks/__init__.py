"""Measurements beside other programs and beside ourselves; README.md here says what each command measures."""
