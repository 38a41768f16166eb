"""Drop-ins for PyTorch's recurrent modules whose time loops run in the compiled kernel."""
