"""Delta rules: from a plan to a program that turns changes of its inputs into changes of its output."""
