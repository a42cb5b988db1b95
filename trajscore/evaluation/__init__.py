"""What an evaluation computes: runs, rows, intervals and recommendations, before any words."""
