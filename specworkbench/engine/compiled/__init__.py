"""Steps of fixed shape, compiled ahead of time on a CPU and captured as graphs on a GPU: `engine="compiled"`."""
