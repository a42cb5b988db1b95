"""What the four papers print and what comes out here, a file a paper."""
