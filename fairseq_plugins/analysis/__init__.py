"""What trained models do, and how their outputs differ, in numbers; ``report`` draws them and has the command."""
