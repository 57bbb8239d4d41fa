"""What trained models do: figures of it, and the numbers behind them."""
