"""Plans evaluated by whole columns, with the kernels of Arrow and numpy: the same collections as the interpreter's."""
