"""What the extractkit harness keeps of a run, and the tables that are made of nothing else."""
