"""What the notebooks' exercises are judged with."""
